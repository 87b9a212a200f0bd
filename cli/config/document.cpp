#include "cli/config/document.hpp"

#include <algorithm>
#include <limits>

namespace ddprun::config {
namespace {

// toml++ 3.3 frees nested tables recursively and does not limit the depth of dotted keys: about 10,000 dots overflow
// the stack. No experiment needs nearly as many.
constexpr std::ptrdiff_t max_dots = 1000;

// Throws toml::parse_error, and Error(usage) for text that is nested too deeply; `where` starts the message.
toml::table parse_toml(const std::string& text, const std::string& where) {
  if (std::count(text.begin(), text.end(), '.') > max_dots) {
    throw Error(ExitCode::usage, where + ": more than " + std::to_string(max_dots) + " dots; this is no configuration");
  }
  return toml::parse(text, std::string_view(where));
}

// Errors of overrides are reported after all lines of the file.
constexpr int64_t after_the_file = std::numeric_limits<int64_t>::max();

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

// The error for an override that names no key.
std::string unknown(const std::string& full_name) {
  const std::size_t dot = full_name.find('.');
  if (dot == std::string::npos) return unknown_key("", full_name);
  const std::string table = full_name.substr(0, dot);
  return is_table(table) ? unknown_key(table, full_name.substr(dot + 1)) : unknown_table(table);
}

}  // namespace

Document::Document(const std::string& text, const std::string& path, Errors& errors) : path_(path), errors_(errors) {
  try {
    parsed_.push_back(parse_toml(text, path));
  } catch (const toml::parse_error& error) {
    const std::string what = one_line(std::string(error.description()));
    const bool is_word = what.ends_with("could not determine value type");
    throw Error(ExitCode::usage,
                location_in_file(error.source()).where + ": " + what + (is_word ? "; a text needs quotes" : ""));
  }
  for (const auto& [toml_key, node] : parsed_.front()) {
    const std::string name(toml_key.str());
    if (!is_table(name)) {
      errors_.add(location_in_file(toml_key.source()), node.is_table() ? unknown_table(name) : unknown_key("", name));
    } else if (const toml::table* content = node.as_table()) {
      read_table(name, *content);
    } else {
      Location location = location_in_file(node.source());
      location.value = node_text(node);
      errors_.add_key(location, name, "expected a table: [" + name + "] on a line of its own");
    }
  }
}

Location Document::location_in_file(const toml::source_region& source) const {
  return {.where = path_ + ":" + std::to_string(source.begin.line) + ":" + std::to_string(source.begin.column),
          .order = {source.begin.line, source.begin.column}};
}

void Document::read_table(const std::string& table, const toml::table& content) {
  for (const auto& [toml_key, node] : content) {
    const std::string name(toml_key.str());
    if (const Key* key = find_key(table + "." + name)) {
      set(*key, node, nullptr);
    } else {
      errors_.add(location_in_file(toml_key.source()), unknown_key(table, name));
    }
  }
}

// A table of options that is set as a whole replaces all earlier options.
void Document::set(const Key& key, const toml::node& node, const Location* overriding) {
  std::erase_if(written_,
                [&](const auto& entry) { return entry.first == key.path || entry.first.starts_with(key.path + "."); });
  const toml::table* options = key.holds_options() ? node.as_table() : nullptr;
  if (options == nullptr) return put(key.path, {&key, {}, &node, {}}, overriding);
  for (const auto& [toml_key, value] : *options) {
    const std::string option(toml_key.str());
    put(key.path + "." + option, {&key, option, &value, {}}, overriding);
  }
}

void Document::put(const std::string& full_name, Written written, const Location* overriding) {
  written.location = overriding != nullptr ? *overriding : location_in_file(written.value->source());
  written.location.value = node_text(*written.value);
  written_.insert_or_assign(full_name, std::move(written));
}

void Document::apply(const std::string& override, const std::string& typed, int64_t index) {
  const Location location{.where = typed, .order = {after_the_file, index}};
  const auto equals = override.find('=');
  if (equals == std::string::npos || has_control(override)) {
    return errors_.add(location, "expected table.key=value on one line, as in --set launch.nproc=2");
  }
  const std::string name = override.substr(0, equals), value = override.substr(equals + 1);
  const Key* key = find_key(name);
  if (key == nullptr) return errors_.add(location, unknown(name));
  if (value.find_first_not_of(' ') == std::string::npos) {
    return errors_.add(location, "no value; write \"\" for an empty string");
  }
  const bool is_option = key->path != name;
  Experiment any;
  const bool takes_string = !is_option && std::holds_alternative<std::string*>(key->member(any));
  try {
    parsed_.push_back(parse_value(value, location.where, takes_string));
  } catch (const toml::parse_error& error) {
    return errors_.add(location, one_line(std::string(error.description())));
  }
  const toml::node& node = *parsed_.back().get("value");
  if (is_option) {
    put(name, {key, name.substr(key->path.size() + 1), &node, {}}, &location);
  } else {
    // train.epochs and train.steps are alternatives. One on the command line replaces the other of the file, which
    // could not be unset otherwise.
    const bool is_one = name == "train.epochs" || name == "train.steps";
    const auto other = written_.find(name == "train.epochs" ? "train.steps" : "train.epochs");
    if (is_one && other != written_.end() && other->second.location.order.first != after_the_file)
      written_.erase(other);
    set(*key, node, &location);
  }
}

}  // namespace ddprun::config
