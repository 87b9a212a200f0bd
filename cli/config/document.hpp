// The steps of load(): reads the file, finds all keys that it and the overrides set, and checks their values.
#pragma once

#include <toml++/toml.h>

#include <deque>
#include <map>
#include <optional>
#include <string>

#include "cli/config/keys.hpp"

namespace ddprun::config {

// One value that is set; for a key with options, one option.
struct Written {
  const Key* key;
  std::optional<std::string> option;
  const toml::node* value;
  Location location;
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
  void read_table(const std::string& table, const toml::table& content);
  // `overriding`: the location of the override that the node comes from; null: the node is from the file.
  void set(const Key& key, const toml::node& node, const Location* overriding);
  void put(const std::string& full_name, Written written, const Location* overriding);
  Location location_in_file(const toml::source_region& source) const;

  std::string path_;
  Errors& errors_;
  std::deque<toml::table> parsed_;  // owns the nodes: the file first, then the overrides
  std::map<std::string, Written> written_;
};

// Sets the key's member, or one of its options, from a value. Returns the error ("expected ..."), or "".
std::string read_value(const Written& written, Experiment& experiment);

// A value as TOML, for errors: on one line; tables and long texts are abbreviated ("a table").
std::string node_text(const toml::node& node);

// Adds an error for every combination of keys that cannot work, though each value is valid by itself. Skips keys that
// already have an error. `ranks`: as in load().
void check_together(const Experiment& experiment, std::optional<int64_t> ranks, const Sources& sources, Errors& errors);

}  // namespace ddprun::config
