// plugin: finds plugins by name or path, opens them with Boost.DLL, and checks their ABI before the first call.
// Torch-free. Plugins are never unloaded.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "ddprun/plugin/comm_plugin.h"
#include "ddprun/plugin/dataset_entry.h"
#include "ddprun/plugin/model_entry.h"

namespace ddprun::plugin {

enum class Kind { comm, model, dataset };

// "comm", "model", "dataset".
const char* name_of(Kind kind);

// A loaded and checked plugin. The function table is valid until the process ends.
struct CommPlugin {
  std::string path;
  const ddprun_comm_plugin* table = nullptr;
};
struct ModelPlugin {
  std::string path;
  const ddprun_model_plugin* table = nullptr;
};
struct DatasetPlugin {
  std::string path;
  const ddprun_dataset_plugin* table = nullptr;
};

// One file of the search path for `ddprun plugins`: a plugin, or the reason why it is not one.
struct Listed {
  Kind kind = Kind::comm;
  std::string name;  // from the file name
  std::string path;
  // A string is the reason for the rejection.
  std::variant<std::string, const ddprun_comm_plugin*, const ddprun_model_plugin*, const ddprun_dataset_plugin*>
      content;
};

// The folders where plugins are searched; the first match wins: those of --plugin-path, those of DDPRUN_PLUGIN_PATH
// (separated by colons), then the program's own: <prefix>/lib/ddprun next to <prefix>/bin, in a build folder as well as
// in a prefix.
class Registry {
 public:
  explicit Registry(std::vector<std::string> folders);
  // Throws Error(usage) if a folder of --plugin-path does not exist.
  static Registry standard(const std::vector<std::string>& plugin_path_option);

  // name is "gloo" or a path (with a '/'). Thread-safe. Throws Error(plugin), with a line of its own for each case: not
  // found (with the searched folders and the plugins there), rejected (everyone can write the file or its folder),
  // truncated, refused (in a child process, it crashes or ends that process), cannot be loaded (with the loader's
  // message), no entry point, wrong ABI (with both versions), incomplete (with the field), wrong name.
  CommPlugin comm(const std::string& name) const;
  // Also rejects a plugin of another Torch version (major.minor.patch) or C++ ABI than the caller passes.
  ModelPlugin model(const std::string& name, const std::string& torch_version, int cxx11_abi) const;

  // As comm().
  DatasetPlugin dataset(const std::string& name) const;

  // The plugin names in the search path, each once, in search order. The files are not loaded.
  std::vector<std::string> names(Kind kind) const;
  // Every libddprun_<kind>_*.so in the search path, in search order.
  std::vector<Listed> list() const;
  const std::vector<std::string>& folders() const { return folders_; }
  // The folders as messages name them; folders that do not exist are marked.
  std::string places() const;

 private:
  std::vector<std::string> folders_;
};

}  // namespace ddprun::plugin
