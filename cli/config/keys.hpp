// The one description of every key of the config. Reading, the check for unknown keys and to_toml() use it.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/config/experiment.hpp"
#include "ddprun/plugin/options.hpp"

namespace ddprun::config {

// The Experiment member that a key sets, by type.
using Member = std::variant<bool*, int64_t*, double*, std::string*, std::optional<int64_t>*, std::vector<double>*,
                            std::vector<int64_t>*, Options*>;

// Whether a run uses a key.
using User = bool (*)(const Experiment&);

struct Key {
  std::string path;  // of the member in Experiment, and so the key's full name: "launch.nproc"
  Member (*member)(Experiment&);
  ddprun_option_spec value;  // what the key accepts; not of a key with options
  User user = nullptr;       // null: all runs
  std::string example{};     // of a key that must be given; otherwise ""
  // Each host of a run has its own value. The ranks compare the values of all other keys: shared_toml().
  bool per_host = false;
  std::vector<std::string> per_host_options{};  // of a key with options: each host has its own value of these
  bool computed_default = false;                // the default follows from other keys or files: errors do not show it
  Change change = Change::free;                 // in a run that resumes from a checkpoint

  std::string table() const { return path.substr(0, path.find('.')); }
  std::string name() const { return path.substr(path.find('.') + 1); }
  bool holds_options() const { return path.ends_with(".options"); }
  // The integer that is stored for a word in place of a number, such as "auto": the one below its least.
  int64_t word_value() const { return parse_integer(value.least).value() - 1; }
};

// In the order of the documentation and of to_toml().
const std::vector<std::string>& tables();
const std::vector<Key>& keys();

// The key by its full name, or null. An option ("comm.options.x") gives the key of its table.
const Key* find_key(const std::string& full_name);
bool is_table(const std::string& name);

// What the key accepts, for errors and documentation: `an integer from 1 to 1024 or "auto"`.
std::string expectation(const Key& key);

// The member as a TOML value on one line; "" for an optional without value.
std::string value_text(const Key& key, Experiment& experiment);

// The error for an unknown key of `table` ("": outside a table, where no key is allowed), as in "launch.nprocs: unknown
// key": with the nearest key there, the same name in another table, or all keys of the table.
std::string unknown_key(const std::string& table, const std::string& name);
std::string unknown_table(const std::string& name);

}  // namespace ddprun::config
