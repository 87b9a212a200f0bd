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
template <typename Table>
struct Plugin {
  std::string path;
  const Table* table = nullptr;
};
using CommPlugin = Plugin<ddprun_comm_plugin>;
using ModelPlugin = Plugin<ddprun_model_plugin>;
using DatasetPlugin = Plugin<ddprun_dataset_plugin>;

// One file of the search path for `ddprun plugins`: a plugin, or the reason why it is not one.
struct Listed {
  Kind kind = Kind::comm;
  std::string name;  // from the file name
  std::string path;
  std::string hidden_by;  // the file of an earlier folder that the name means, otherwise ""; then it is not loaded
  // A string is the reason for the rejection, or empty if another file hides this one.
  std::variant<std::string, const ddprun_comm_plugin*, const ddprun_model_plugin*, const ddprun_dataset_plugin*>
      content;
};

// The folders where plugins are searched; the first match wins:
//   1. those of --plugin-path;
//   2. those of DDPRUN_PLUGIN_PATH, separated by colons;
//   3. ddprun's own: <prefix>/lib/ddprun/v1 next to <prefix>/bin and to <prefix>/lib/libddprun.so, in a build folder as
//      well as in a prefix;
//   4. the user's own: $XDG_DATA_HOME/ddprun/plugins/v1, where XDG_DATA_HOME is $HOME/.local/share unless it is an
//      absolute path;
//   5. the machine's own: /usr/local/lib/ddprun/v1.
// The program's come before the user's: only 1 and 2, which a command names, replace what ddprun brings along.
// cli/console/command_line.hpp says the same in --help.
class Registry {
 public:
  explicit Registry(std::vector<std::string> folders);
  // Throws Error(usage) if a folder of --plugin-path does not exist. Other missing folders are no error.
  static Registry standard(const std::vector<std::string>& plugin_path_option);

  // name is "gloo" or a path (with a '/'). Thread-safe. Throws Error(plugin), with a line of its own for each case: not
  // found (with the searched folders and the plugins there), rejected (everyone can write the file or its folder),
  // refused (in a child process, it crashes or ends that process), cannot be loaded (with the loader's message), no
  // entry point, wrong ABI (with both versions), incomplete (with the field), wrong name.
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
