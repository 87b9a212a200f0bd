// All keys that the file and the overrides set, before their values are checked.
#pragma once

#include <toml++/toml.h>

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/config/errors.hpp"
#include "cli/config/keys.hpp"

namespace ddprun::config {

// One value that is set; for a key with options, one option.
struct Written {
  const Key* key;
  std::optional<std::string> option;
  const toml::node* value;
  Place place;
};

// Unknown keys, and tables that are not tables, are errors; all other values are in written().
class Document {
 public:
  // Parses the text of the file `path`. Throws Error(usage) if its syntax is wrong.
  Document(const std::string& text, const std::string& path, Errors& errors);
  // Applies "table.key=value", override number `index` of the command line, which errors show as `typed`. A later value
  // replaces an earlier one.
  void apply(const std::string& override, const std::string& typed, int64_t index);

  // By full name.
  const std::map<std::string, Written>& written() const { return written_; }

 private:
  void take_file();
  const Key* find_named(const std::string& full_name, const Place& place, std::optional<std::string>& option);
  void take_table(const std::string& table, const toml::table& content);
  // `overriding`: the place of the override that the node comes from; null: the node is from the file.
  void take(const Key& key, const toml::node& node, const Place* overriding);
  void take_option(const Key& key, const std::string& option, const toml::node& node, const Place* overriding);
  void replace_rival(const Key& key);
  void put(const std::string& full_name, Written written);
  void forget(const std::string& full_name);
  Place at(const toml::source_region& source) const;

  std::string path_;
  std::string text_;  // that of the nodes which take() gets
  Errors& faults_;
  std::deque<toml::table> parsed_;  // owns the nodes: the file first, then the overrides
  std::map<std::string, Written> written_;
};

}  // namespace ddprun::config
