#include "cli/config/document.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <sstream>

#include "cli/config/hints.hpp"
#include "cli/config/parse.hpp"
#include "cli/config/text.hpp"
#include "cli/config/value.hpp"
#include "ddprun/error.hpp"

namespace ddprun::config {
namespace {

// For `name = linear`, which TOML's parser takes as a wrong number or date. Empty if the line is not of this kind.
std::string advice_on_quotes(const std::string& text, std::size_t line) {
  constexpr const char* kSpace = " \t\r";
  std::istringstream lines(text);
  std::string found;
  for (std::size_t number = 0; number < line; ++number) std::getline(lines, found);
  const std::size_t equals = found.find('=');
  if (equals == std::string::npos) return "";
  std::string value = found.substr(equals + 1);
  value.erase(std::min(value.find('#'), value.size()));
  value.erase(0, value.find_first_not_of(kSpace));
  value.erase(value.find_last_not_of(kSpace) + 1);
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || std::strchr("_./~-", c) != nullptr; };
  const bool is_word = !value.empty() && std::isalpha(static_cast<unsigned char>(value[0])) != 0 &&
                       std::all_of(value.begin(), value.end(), is_plain);
  return is_word ? "; a text needs quotes: " + quoted(value) : "";
}

}  // namespace

Document::Document(const std::string& text, const std::string& path, Errors& errors)
    : path_(path), text_(text), faults_(errors) {
  try {
    parsed_.push_back(parse_toml(text, path));
  } catch (const toml::parse_error& error) {
    const auto& begin = error.source().begin;
    throw Error(ExitCode::usage, path + ":" + std::to_string(begin.line) + ":" + std::to_string(begin.column) + ": " +
                                     one_line(std::string(error.description())) + advice_on_quotes(text, begin.line));
  }
  take_file();
}

Place Document::at(const toml::source_region& source) const {
  return {.where = path_ + ":" + std::to_string(source.begin.line) + ":" + std::to_string(source.begin.column),
          .value = "",
          .order = {source.begin.line, source.begin.column}};
}

void Document::take_file() {
  for (const auto& [toml_key, node] : parsed_.front()) {
    const std::string name(toml_key.str());
    if (const Key* key = find_key("", name)) {
      take(*key, node, nullptr);
    } else if (!is_table(name)) {
      faults_.add(at(toml_key.source()),
                  key_text(name) + ": " + (node.is_table() ? unknown_table(name) : unknown_at_top(name)));
    } else if (const toml::table* content = node.as_table()) {
      take_table(name, *content);
    } else {
      Place place = at(node.source());
      place.value = node_text(node, text_);
      faults_.add_key(place, name, "expected a table: [" + name + "] on a line of its own");
    }
  }
}

void Document::take_table(const std::string& table, const toml::table& content) {
  for (const auto& [toml_key, node] : content) {
    const std::string name(toml_key.str());
    if (const Key* key = find_key(table, name)) {
      take(*key, node, nullptr);
    } else {
      faults_.add(at(toml_key.source()), table + "." + key_text(name) + ": " + unknown_key(table, name));
    }
  }
}

void Document::take(const Key& key, const toml::node& node, const Place* overriding) {
  forget(key.full_name());
  if (const toml::table* options = node.as_table(); options != nullptr && holds_options(key)) {
    for (const auto& [option, value] : *options) take_option(key, std::string(option.str()), value, overriding);
    return;
  }
  put(key.full_name(), {&key, {}, &node, overriding == nullptr ? at(node.source()) : *overriding});
}

void Document::take_option(const Key& key, const std::string& option, const toml::node& node, const Place* overriding) {
  put(key.full_name() + "." + option, {&key, option, &node, overriding == nullptr ? at(node.source()) : *overriding});
}

void Document::put(const std::string& full_name, Written written) {
  written.place.value = node_text(*written.value, text_);
  written_.insert_or_assign(full_name, std::move(written));
}

// A table of options that is set as a whole replaces all earlier options.
void Document::forget(const std::string& full_name) {
  std::erase_if(written_, [&](const auto& entry) {
    return entry.first == full_name || entry.first.starts_with(full_name + ".");
  });
}

}  // namespace ddprun::config
