#include "cli/config/keys.hpp"

namespace ddprun::config {
namespace {

// Pointers to members need an object that is not const: hence the copy.
std::string written(Experiment experiment, bool shared) {
  std::string out, table;
  for (const Key& key : keys()) {
    if (key.table() != table) out += (out.empty() ? "[" : "\n[") + (table = key.table()) + "]\n";
    if (shared && key.per_host) continue;
    const std::string value = value_text(key, experiment);
    if (!value.empty()) out += key.name() + " = " + value + "\n";
  }
  return out;
}

}  // namespace

std::string to_toml(const Experiment& experiment) {
  return written(experiment, /*shared=*/false);
}

std::string shared_toml(const Experiment& experiment) {
  Experiment shared = experiment;
  shared.comm.options = shared_options(shared.comm.options);
  return written(shared, /*shared=*/true);
}

Options shared_options(Options options) {
  for (const std::string& name : find_key("comm.options")->per_host_options) options.erase(name);
  if (const auto tuning = options.find("tuning"); tuning != options.end()) tuning->second = "given";
  return options;
}

std::map<std::string, std::string> key_values(const Experiment& experiment) {
  Experiment copy = experiment;
  make_paths_absolute(copy);  // the config of a run folder names the same files in another way
  std::map<std::string, std::string> values;
  for (const Key& key : keys()) values[key.path] = value_text(key, copy);
  return values;
}

Change change_of(const std::string& key) {
  const Key* found = find_key(key);
  return found == nullptr ? Change::free : found->change;
}

}  // namespace ddprun::config
