// plugin: finds plugins by name or path, opens them with Boost.DLL, and checks their ABI before anything is called. The
// only module that knows shared libraries. Torch-free; plugins are never unloaded.
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

// A loaded and checked plugin. The table lives as long as the process.
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

// One file of the search path for `ddprun plugins`: a plugin, or why it is none.
struct Listed {
  Kind kind = Kind::comm;
  std::string name;  // from the file's name
  std::string path;
  // A string: why it is refused.
  std::variant<std::string, const ddprun_comm_plugin*, const ddprun_model_plugin*, const ddprun_dataset_plugin*>
      content;
};

// Where plugins are looked for, first match wins: the folders of --plugin-path, those of DDPRUN_PLUGIN_PATH (colons),
// then the folder that belongs to the program: <prefix>/lib/ddprun beside <prefix>/bin, for the build folder as for a
// prefix.
class Registry {
 public:
  explicit Registry(std::vector<std::string> folders);
  // Throws Error(usage) for a folder of --plugin-path that is not there.
  static Registry standard(const std::vector<std::string>& plugin_path_option);

  // name is "gloo" or a path (it holds a '/'). Any thread. Throws Error(plugin) with one distinct line: not found
  // (where it looked, what there is), refused (the file or its folder can be written by everyone), cannot be loaded
  // (the loader's words), no entry point, wrong ABI (both versions), incomplete (the field that is null), wrong name.
  CommPlugin comm(const std::string& name) const;
  // Also refuses a plugin of another Torch (major.minor.patch) or C++ ABI than this program's, which the caller states.
  ModelPlugin model(const std::string& name, const std::string& torch_version, int cxx11_abi) const;

  // As comm().
  DatasetPlugin dataset(const std::string& name) const;

  // The names that files of the search path have, each once, in its order; whether they load is not looked at.
  std::vector<std::string> names(Kind kind) const;
  // Every libddprun_<kind>_*.so of the search path, in its order.
  std::vector<Listed> list() const;
  const std::vector<std::string>& folders() const { return folders_; }
  // The folders as messages name them, with a word on those that do not exist.
  std::string places() const;

 private:
  std::vector<std::string> folders_;
};

}  // namespace ddprun::plugin
