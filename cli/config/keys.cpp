#include "cli/config/keys.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "ddprun/plugin/words.hpp"

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

const std::vector<std::string>& tables() {
  static const std::vector<std::string> all = {"experiment", "launch", "comm",       "strategy", "model", "data",
                                               "optimizer",  "train",  "checkpoint", "log",      "faults"};
  return all;
}

const Key* find_key(const std::string& full_name) {
  constexpr std::string_view of_options = ".options";
  const std::size_t at = full_name.find(".options.");
  const std::string path = at == std::string::npos ? full_name : full_name.substr(0, at + of_options.size());
  const auto found = std::ranges::find(keys(), path, &Key::path);
  return found == keys().end() ? nullptr : &*found;
}

bool is_table(const std::string& name) {
  return std::find(tables().begin(), tables().end(), name) != tables().end();
}

std::string expectation(const Key& key) {
  return key.holds_options() ? "a table of strings, numbers, true and false" : ddprun::expectation(key.value);
}

std::string unknown_key(const std::string& table, const std::string& name) {
  const bool at_top = table.empty();
  std::vector<std::string> names;
  for (const Key& key : keys()) {
    if (key.table() == table) names.push_back(key.name());
  }
  if (at_top) names.insert(names.end(), tables().begin(), tables().end());
  const std::string unknown = (at_top ? "" : table + ".") + key_text(name) + ": unknown key";
  if (const std::string hint = did_you_mean(name, names); !hint.empty()) return unknown + hint;
  for (const Key& key : keys()) {
    if (key.name() != name) continue;
    return unknown + (at_top ? " outside a table" : "") + " (did you mean " + quoted(key.path) + "?)";
  }
  return unknown + "; " + (at_top ? "every key stands in a table" : "[" + table + "] takes " + enumerated(names));
}

std::string unknown_table(const std::string& name) {
  const std::string hint = did_you_mean(name, tables());
  return key_text(name) + ": unknown table" + (hint.empty() ? "; the tables are " + enumerated(tables()) : hint);
}

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
