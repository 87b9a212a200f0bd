// The part of Document that reads --set table.key=value.
#include <limits>

#include "cli/config/document.hpp"
#include "cli/config/hints.hpp"
#include "cli/config/parse.hpp"
#include "cli/config/text.hpp"

namespace ddprun::config {
namespace {

// Errors of overrides are reported after all lines of the file.
constexpr int64_t after_the_file = std::numeric_limits<int64_t>::max();

std::vector<std::string> split(const std::string& name) {
  std::vector<std::string> parts(1);
  for (char c : name) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

const std::string value_is = "value = ";

// The value as TOML, or as a bare word. Text that starts like a quoted string, a list or a table, and text that is not
// UTF-8, is not a bare word; its syntax error is reported. For a key that takes a string, a number or a date is one
// too.
toml::table parse_value(const std::string& text, const std::string& where, bool takes_string) {
  const bool may_be_word = text.find_first_of("\"'[{") != 0 && is_utf8(text);
  if (takes_string && may_be_word) return parse_toml(value_is + quoted(text), where);
  try {
    return parse_toml(value_is + text, where);
  } catch (const toml::parse_error&) {
    if (!may_be_word) throw;
    return parse_toml(value_is + quoted(text), where);
  }
}

}  // namespace

void Document::apply(const std::string& override, const std::string& typed, int64_t index) {
  const Place place{.where = typed, .value = "", .order = {after_the_file, index}};
  const auto equals = override.find('=');
  if (equals == std::string::npos || has_control(override)) {
    faults_.add(place, "expected table.key=value on one line, as in --set launch.nproc=2");
    return;
  }
  std::optional<std::string> option;
  const Key* key = find_named(override.substr(0, equals), place, option);
  if (key == nullptr) return;
  const std::string value = override.substr(equals + 1);
  if (value.find_first_not_of(' ') == std::string::npos) {
    faults_.add(place, "no value; write \"\" for an empty string");
    return;
  }
  try {
    parsed_.push_back(parse_value(value, place.where, !option && takes_string(*key)));
  } catch (const toml::parse_error& error) {
    faults_.add(place, one_line(std::string(error.description())));
    return;
  }
  text_ = value_is + value;
  const toml::node& node = *parsed_.back().get("value");
  if (option) {
    take_option(*key, *option, node, &place);
  } else {
    replace_rival(*key);
    take(*key, node, &place);
  }
}

// The key that an override names, and its option; null, after adding an error, if there is none.
const Key* Document::find_named(const std::string& full_name, const Place& place, std::optional<std::string>& option) {
  const std::vector<std::string> parts = split(full_name);
  const bool at_top = parts.size() == 1;
  const std::string &table = at_top ? "" : parts[0], &name = at_top ? parts[0] : parts[1];
  const Key* key = find_key(table, name);
  if (!at_top && !is_table(table)) {
    faults_.add(place, key_text(table) + ": " + unknown_table(table));
  } else if (key == nullptr) {
    faults_.add(place, (at_top ? "" : table + ".") + key_text(name) + ": " +
                           (at_top ? unknown_at_top(name) : unknown_key(table, name)));
  } else if (parts.size() > 2 && !(holds_options(*key) && parts.size() == 3 && !parts[2].empty())) {
    faults_.add(place, "expected table.key=value, or table.options.name=value");
  } else {
    if (parts.size() == 3) option = parts[2];
    return key;
  }
  return nullptr;
}

// train.epochs and train.steps are alternatives. One on the command line replaces the other of the file, which could
// not be unset otherwise.
void Document::replace_rival(const Key& key) {
  const std::string name = key.full_name();
  if (name != "train.epochs" && name != "train.steps") return;
  const auto rival = written_.find(name == "train.epochs" ? "train.steps" : "train.epochs");
  if (rival != written_.end() && rival->second.place.order.first != after_the_file) written_.erase(rival);
}

}  // namespace ddprun::config
