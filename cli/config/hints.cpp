#include "cli/config/hints.hpp"

#include <algorithm>
#include <vector>

#include "cli/config/keys.hpp"
#include "cli/config/text.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::config {
namespace {

std::vector<std::string> names_in(const std::string& table) {
  std::vector<std::string> names;
  for (const Key& key : keys()) {
    if (key.table == table) names.push_back(key.name);
  }
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::string unknown_key(const std::string& table, const std::string& name) {
  const std::vector<std::string> names = names_in(table);
  if (const std::string hint = did_you_mean(name, names); !hint.empty()) return "unknown key" + hint;
  for (const Key& key : keys()) {
    if (key.name == name && !key.table.empty()) return "unknown key (did you mean " + quoted(key.full_name()) + "?)";
  }
  return "unknown key; [" + table + "] takes " + listed(names);
}

std::string setting_for_option(const std::string& option) {
  if (!option.starts_with("--")) return "";
  const std::size_t equals = std::min(option.find('='), option.size());
  std::string name = option.substr(2, equals - 2);
  std::replace(name.begin(), name.end(), '-', '_');
  const Key* meant = nullptr;
  for (const Key& key : keys()) {
    if (key.table.empty() || key.table == "faults" || (key.name != name && key.full_name() != name)) continue;
    if (meant != nullptr) return "";
    meant = &key;
  }
  if (meant == nullptr) return "";
  return "--set " + meant->full_name() + "=" + (equals == option.size() ? "VALUE" : option.substr(equals + 1));
}

std::string unknown_table(const std::string& name) {
  std::vector<std::string> names;
  for (const Table& table : tables()) names.push_back(table.name);
  const std::string hint = did_you_mean(name, names);
  return "unknown table" + (hint.empty() ? "; the tables are " + listed(names) : hint);
}

std::string unknown_at_top(const std::string& name) {
  std::vector<std::string> names = names_in("");
  for (const Table& table : tables()) names.push_back(table.name);
  if (const std::string hint = did_you_mean(name, names); !hint.empty()) return "unknown key" + hint;
  for (const Key& key : keys()) {
    if (key.name == name) return "unknown key outside a table (did you mean " + quoted(key.full_name()) + "?)";
  }
  return "unknown key; every key but schema_version stands in a table";
}

}  // namespace ddprun::config
