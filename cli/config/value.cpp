#include "cli/config/document.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <iterator>
#include <sstream>
#include <utility>

#include "base/text.hpp"

namespace ddprun::config {
namespace {

// Seconds as a duration: "30s", "0.5s"; reads back exactly.
std::string duration_text(double seconds) {
  char buffer[512];  // the longest fixed notation of a double has 1 + 308 + 1 digits, or 2 + 324 + 16
  return std::string(buffer, std::to_chars(buffer, std::end(buffer), seconds, std::chars_format::fixed).ptr) + "s";
}

// As a plugin gets it: "3", "0.5", "true", or the string itself. Nothing for a list, a table and a date.
std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto truth = node.value_exact<bool>()) return *truth ? "true" : "false";
  if (const auto integer = node.value_exact<int64_t>()) return std::to_string(*integer);
  if (const auto number = node.value_exact<double>()) return exact_text(*number);
  return node.value_exact<std::string>();
}

// Whether TOML writes values of this type of an option so: a number without quotes, for example.
bool has_type(const toml::node& node, int32_t type) {
  const auto text = node.value_exact<std::string>();
  const auto number = node.value_exact<double>();
  const bool is_word = text && !parse_real(*text);  // such as "auto", in place of a number
  switch (type) {
    case DDPRUN_OPTION_INTEGER: return node.is_integer() || is_word;
    case DDPRUN_OPTION_REAL: return node.is_number() || is_word;
    case DDPRUN_OPTION_FLAG: return node.is_boolean();
    case DDPRUN_OPTION_PART: return node.is_integer() || (number && *number != std::trunc(*number));  // 1.0 is neither
    default: return text.has_value();
  }
}

// Returns the error, or "".
std::string scalar_error(const ddprun_option_spec& spec, const toml::node& node) {
  return has_type(node, spec.type) ? value_error(spec, *scalar_text(node)) : "expected " + ddprun::expectation(spec);
}

// Whether the node is a list of what a declaration allows, and of as many.
bool is_list_of(ddprun_option_spec spec, const toml::node& node) {
  const toml::array* list = node.as_array();
  if (list == nullptr || (spec.list > 1 && list->size() != static_cast<std::size_t>(spec.list))) return false;
  spec.list = 0;
  return std::all_of(list->begin(), list->end(),
                     [&](const toml::node& element) { return scalar_error(spec, element).empty(); });
}

// Returns the error, or "".
std::string node_error(const Key& key, const toml::node& node) {
  const std::string expected = "expected " + expectation(key);
  if (key.holds_options()) return expected;
  if (key.value.list != 0) return is_list_of(key.value, node) ? "" : expected;
  const std::string wrong = scalar_error(key.value, node);
  if (!wrong.empty()) return wrong;
  const bool breaks_line = has_control(node.value_exact<std::string>().value_or(""));
  return breaks_line ? "expected a string without control characters" : "";
}

// Sets one member from a value without error.
struct Reader {
  const Key& key;
  const toml::node& node;

  std::string text() const { return *scalar_text(node); }

  void operator()(bool* member) const { *member = *parse_flag(text()); }
  void operator()(int64_t* member) const { *member = parse_integer(text()).value_or(key.word_value()); }
  void operator()(double* member) const {
    if (key.value.type == DDPRUN_OPTION_DURATION) {
      *member = std::chrono::duration<double>(*parse_duration(text())).count();
    } else {
      *member = *parse_real(text()) + 0.0;  // -0.0 becomes 0: it would be written as "-0", an integer without a sign
    }
  }
  void operator()(std::string* member) const { *member = text(); }
  void operator()(std::optional<int64_t>* member) const { *member = parse_integer(text()); }
  template <typename T>
  void operator()(std::vector<T>* member) const {
    member->clear();
    for (const toml::node& element : *node.as_array()) Reader{key, element}(&member->emplace_back());
  }
  void operator()(Options*) const {}
};

struct Writer {
  const Key& key;

  std::string operator()(const bool* member) const { return *member ? "true" : "false"; }
  std::string operator()(const int64_t* member) const {
    const bool is_word = key.value.choices != nullptr && *member == key.word_value();
    return is_word ? quoted(key.value.choices) : std::to_string(*member);
  }
  std::string operator()(const double* member) const {
    if (key.value.type == DDPRUN_OPTION_PART && *member >= 1) return std::to_string(static_cast<int64_t>(*member));
    return key.value.type == DDPRUN_OPTION_DURATION ? quoted(duration_text(*member)) : exact_text(*member);
  }
  std::string operator()(const std::string* member) const { return quoted(*member); }
  std::string operator()(const std::optional<int64_t>* member) const {
    return *member ? std::to_string(**member) : std::string();
  }
  template <typename T>
  std::string operator()(const std::vector<T>* member) const {
    std::string text;
    for (const T& element : *member) text += (text.empty() ? "" : ", ") + (*this)(&element);
    return "[" + text + "]";
  }
  std::string operator()(const Options* member) const {
    std::string text;
    for (const auto& [name, value] : *member)
      text += (text.empty() ? " " : ", ") + key_text(name) + " = " + quoted(value);
    return text.empty() ? "{}" : "{" + text + " }";
  }
};

constexpr std::size_t longest_text = 80;

}  // namespace

std::string read_value(const Written& written, Experiment& experiment) {
  const Key& key = *written.key;
  if (written.option) {
    const auto text = scalar_text(*written.value);
    if (!text) return "expected a string, a number, true or false";
    if (text->find('\0') != std::string::npos) return "expected a string without the character 0";
    (*std::get<Options*>(key.member(experiment)))[*written.option] = *text;
    return "";
  }
  const std::string wrong = node_error(key, *written.value);
  if (wrong.empty()) std::visit(Reader{key, *written.value}, key.member(experiment));
  return wrong;
}

std::string value_text(const Key& key, Experiment& experiment) {
  return std::visit(Writer{key}, key.member(experiment));
}

std::string node_text(const toml::node& node) {
  if (node.is_table()) return "a table";
  std::ostringstream out;
  if (const toml::array* list = node.as_array()) {
    std::string before = "[";
    for (const toml::node& element : *list) out << std::exchange(before, ", ") << node_text(element);
    out << (list->empty() ? "[]" : "]");
  } else if (const auto number = node.value_exact<double>()) {
    const std::string text = exact_text(*number);  // toml++ would write 0.1 with 17 digits
    const bool looks_whole = text.find_first_not_of("-0123456789") == std::string::npos;
    out << text << (looks_whole ? ".0" : "");
  } else {
    node.visit([&](const auto& typed) {
      out << toml::toml_formatter{typed, toml::format_flags::allow_unicode_strings};
    });
  }
  return out.str().size() <= longest_text ? out.str() : "a long text";
}

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::toml_formatter{toml::value<std::string>(text), toml::format_flags::allow_unicode_strings};
  return out.str();
}

std::string key_text(const std::string& key) {
  constexpr const char* bare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !key.empty() && key.find_first_not_of(bare) == key.npos ? key : quoted(key);
}

bool has_control(const std::string& text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool is_utf8(const std::string& text) {
  // toml++ writes each byte of an invalid sequence as a separate character, so such text would not read back equal.
  return toml::parse("text = " + quoted(text)).get("text")->value_exact<std::string>() == text;
}

std::string one_line(const std::string& text) {
  return has_control(text) ? quoted(text) : text;
}

}  // namespace ddprun::config
