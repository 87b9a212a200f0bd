#include "cli/config/keys.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::config {

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

bool Key::takes_string() const {
  Experiment any;
  return std::holds_alternative<std::string*>(member(any));
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

}  // namespace ddprun::config
