#include "cli/config/keys.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/config/text.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::config {

const std::vector<std::string>& tables() {
  static const std::vector<std::string> all = {"experiment", "launch", "comm",       "strategy", "model", "data",
                                               "optimizer",  "train",  "checkpoint", "log",      "faults"};
  return all;
}

const Key* find_key(const std::string& table, const std::string& name) {
  const auto found = std::find_if(keys().begin(), keys().end(),
                                  [&](const Key& key) { return key.table() == table && key.name() == name; });
  return found == keys().end() ? nullptr : &*found;
}

const Key* find_key(const std::string& full_name) {
  const auto first = full_name.find('.');
  if (first == std::string::npos) return nullptr;
  const std::string table = full_name.substr(0, first), name = full_name.substr(first + 1);
  const Key* options = find_key(table, "options");
  return options != nullptr && name.starts_with("options.") ? options : find_key(table, name);
}

bool is_table(const std::string& name) {
  return std::find(tables().begin(), tables().end(), name) != tables().end();
}

bool holds_options(const Key& key) {
  Experiment any;
  return std::holds_alternative<Options*>(key.member(any));
}

bool takes_string(const Key& key) {
  Experiment any;
  return std::holds_alternative<std::string*>(key.member(any));
}

std::string expectation(const Key& key) {
  return holds_options(key) ? "a table of strings, numbers, true and false" : ddprun::expectation(key.value);
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

}  // namespace ddprun::config
