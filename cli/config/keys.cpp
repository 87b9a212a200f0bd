#include "cli/config/keys.hpp"

#include <algorithm>
#include <cmath>

#include "cli/config/text.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::config {
namespace {

std::string range_text(const Range& range) {
  const bool low = std::isfinite(range.low), high = std::isfinite(range.high);
  if (!low && !high) return "";
  if (!high) return " of at least " + number_text(range.low);
  if (range.low_open) return " above " + number_text(range.low) + " and at most " + number_text(range.high);
  return " from " + number_text(range.low) + (range.high_open ? " to below " : " to ") + number_text(range.high);
}

struct Expectation {
  const Key& key;

  std::string operator()(bool*) const { return "true or false"; }
  std::string operator()(int64_t*) const {
    if (key.range.low == key.range.high) return "the integer " + number_text(key.range.low);
    const std::string integer = "an integer" + range_text(key.range);
    return key.count_word.empty() ? integer : integer + " or " + quoted(key.count_word);
  }
  std::string operator()(std::optional<int64_t>*) const { return "an integer" + range_text(key.range); }
  std::string operator()(double*) const {
    if (key.form == Form::part) return "a fraction above 0 and below 1, or an integer" + range_text(key.range);
    if (key.form != Form::duration) return "a number" + range_text(key.range);
    return std::string("a duration from ") + (key.range.low == 0 ? "\"0s\"" : "\"1ms\"") +
           " to \"24h\", such as \"30s\"";
  }
  std::string operator()(std::string*) const {
    if (!key.words.empty()) return quoted_list(key.words);
    return key.nonempty ? "a string of at least one character" : "a string";
  }
  std::string operator()(std::vector<double>*) const { return "two numbers" + range_text(key.range); }
  std::string operator()(std::vector<int64_t>*) const { return "a list of integers" + range_text(key.range); }
  std::string operator()(Options*) const { return "a table of strings, numbers, true and false"; }
};

}  // namespace

bool Range::holds(double value) const {
  return std::isfinite(value) && (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
}

Key::Key(const std::string& path, Member (*member)(Experiment&)) : member(member) {
  const auto dot = path.find('.');
  if (dot != std::string::npos) table = path.substr(0, dot);
  name = dot == std::string::npos ? path : path.substr(dot + 1);
}

Key& Key::doc(const std::string& text) {
  meaning = text;
  return *this;
}

Key& Key::between(double low, double high) {
  range = {.low = low, .high = high};
  return *this;
}

Key& Key::at_least(double low) {
  range = {.low = low};
  return *this;
}

Key& Key::above(double low, double high) {
  range = {.low = low, .high = high, .low_open = true};
  return *this;
}

Key& Key::from_to_below(double low, double high) {
  range = {.low = low, .high = high, .high_open = true};
  return *this;
}

Key& Key::one_of(std::vector<std::string> allowed) {
  words = std::move(allowed);
  return *this;
}

Key& Key::in_form(Form value) {
  form = value;
  if (form == Form::duration) range = {.low = 0.001, .high = 24 * 60 * 60};
  return *this;
}

Key& Key::or_word(const std::string& word) {
  count_word = word;
  return *this;
}

Key& Key::used_by(User value) {
  user = value;
  return *this;
}

Key& Key::not_empty() {
  nonempty = true;
  return *this;
}

Key& Key::must_be_given(const std::string& as_in) {
  required = true;
  example = as_in;
  return not_empty();
}

Key& Key::default_means(const std::string& text) {
  default_note = text;
  return *this;
}

Key& Key::may_differ() {
  per_host = true;
  return *this;
}

Key& Key::may_differ_in(std::vector<std::string> options) {
  per_host_options = std::move(options);
  return *this;
}

const Key* find_key(const std::string& table, const std::string& name) {
  const auto found = std::find_if(keys().begin(), keys().end(),
                                  [&](const Key& key) { return key.table == table && key.name == name; });
  return found == keys().end() ? nullptr : &*found;
}

const Key* find_key(const std::string& full_name) {
  const auto first = full_name.find('.');
  if (first == std::string::npos) return find_key("", full_name);
  const std::string table = full_name.substr(0, first), name = full_name.substr(first + 1);
  const Key* options = find_key(table, "options");
  return options != nullptr && name.starts_with("options.") ? options : find_key(table, name);
}

bool is_table(const std::string& name) {
  return std::any_of(tables().begin(), tables().end(), [&](const Table& table) { return table.name == name; });
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
  Experiment any;
  return std::visit(Expectation{key}, key.member(any));
}

}  // namespace ddprun::config
