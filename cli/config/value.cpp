#include "cli/config/document.hpp"

#include <algorithm>
#include <sstream>

#include "cli/config/text.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::config {
namespace {

// Sets one member; the function for its type returns the error, or "".
struct Reader {
  const Key& key;
  const toml::node& node;

  std::string expected() const { return "expected " + expectation(key); }

  std::string operator()(bool* member) const {
    const auto value = node.value_exact<bool>();
    if (!value) return expected();
    *member = *value;
    return "";
  }

  std::string operator()(int64_t* member) const {
    if (!key.count_word.empty() && node.value_exact<std::string>() == key.count_word) {
      *member = key.word_value();
      return "";
    }
    const auto value = node.value_exact<int64_t>();
    if (!value || !key.range.holds(static_cast<double>(*value))) return expected();
    *member = *value;
    return "";
  }

  std::string operator()(std::optional<int64_t>* member) const {
    int64_t value = 0;
    const std::string wrong = (*this)(&value);
    if (wrong.empty()) *member = value;
    return wrong;
  }

  std::string operator()(double* member) const {
    std::optional<double> value;
    if (key.form == Form::duration) {
      value = read_duration(node.value_exact<std::string>().value_or(""));
    } else if (key.form == Form::part && node.is_floating_point()) {
      value = node.value_exact<double>();
      if (!(*value > 0 && *value < 1)) return expected();
    } else if (node.is_number()) {
      value = node.value<double>();
    }
    if (!value || !key.range.holds(*value)) return expected();
    *member = *value + 0.0;  // -0.0 becomes 0: it would be written as "-0", an integer without a sign
    return "";
  }

  std::string operator()(std::string* member) const {
    const auto value = node.value_exact<std::string>();
    if (!value && node.is_value()) return expected() + "; write it in quotes";
    if (!value || (key.nonempty && value->empty())) return expected();
    if (has_control(*value)) return "expected a string without control characters";
    if (!key.words.empty() && std::find(key.words.begin(), key.words.end(), *value) == key.words.end()) {
      return expected_one_of(*value, key.words);
    }
    *member = *value;
    return "";
  }

  template <typename T>
  std::string operator()(std::vector<T>* member) const {
    constexpr bool is_pair = std::is_same_v<T, double>;  // two numbers
    const toml::array* list = node.as_array();
    if (list == nullptr || (is_pair && list->size() != member->size())) return expected();
    std::vector<T> values(list->size());
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (!Reader{key, (*list)[i]}(&values[i]).empty()) return expected();
    }
    *member = values;
    return "";
  }

  std::string operator()(Options*) const { return expected(); }
};

struct Writer {
  const Key& key;

  std::string operator()(const bool* member) const { return *member ? "true" : "false"; }
  std::string operator()(const int64_t* member) const {
    const bool is_word = !key.count_word.empty() && *member == key.word_value();
    return is_word ? quoted(key.count_word) : std::to_string(*member);
  }
  std::string operator()(const double* member) const {
    if (key.form == Form::part && *member >= 1) return std::to_string(static_cast<int64_t>(*member));
    return key.form == Form::duration ? quoted(duration_text(*member)) : number_text(*member);
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

// The part of one line of `text` that a node was parsed from. toml++ counts columns in characters, not in bytes.
std::string written_at(const toml::source_region& source, const std::string& text) {
  std::size_t at = 0;
  for (toml::source_index line = 1; line < source.begin.line; ++line) at = text.find('\n', at) + 1;
  const auto is_continued = [&] { return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  std::string part;
  for (toml::source_index column = 1; column < source.end.column && at < text.size(); ++column) {
    const std::size_t begin = at++;
    while (is_continued()) ++at;
    if (column >= source.begin.column) part += text.substr(begin, at - begin);
  }
  return part;
}

// Short, and without lists or tables.
bool is_simple(const toml::array& list) {
  return list.size() <= 8 && std::none_of(list.begin(), list.end(), [](const toml::node& element) {
           return element.is_table() || element.is_array();
         });
}

// What to write instead of a list if a string is expected: "0.5, 0.5" with its quotes; empty if that is too long.
std::string list_as_string(const toml::node& node) {
  const toml::array* list = node.as_array();
  if (list == nullptr || list->empty() || !is_simple(*list)) return "";
  std::string text;
  for (const toml::node& element : *list) {
    text += (text.empty() ? "" : ", ") + element.value_exact<std::string>().value_or(node_text(element));
  }
  return text.size() > longest_text ? "" : config::quoted(text);
}

// Returns the error, or "".
std::string read_option(const toml::node& node, std::string& value) {
  if (const auto text = node.value_exact<std::string>()) {
    if (text->find('\0') != std::string::npos) return "expected a string without the character 0";
    value = *text;
  } else if (const auto truth = node.value_exact<bool>()) {
    value = *truth ? "true" : "false";
  } else if (const auto integer = node.value_exact<int64_t>()) {
    value = std::to_string(*integer);
  } else if (const auto number = node.value_exact<double>()) {
    value = number_text(*number);
  } else {
    const std::string list = list_as_string(node);
    return "expected a string, a number, true or false" + (list.empty() ? "" : "; a list is written as " + list);
  }
  return "";
}

}  // namespace

std::string read_value(const Written& written, Experiment& experiment) {
  const Key& key = *written.key;
  if (!written.option) return std::visit(Reader{key, *written.value}, key.member(experiment));
  return read_option(*written.value, (*std::get<Options*>(key.member(experiment)))[*written.option]);
}

std::string value_text(const Key& key, Experiment& experiment) {
  return std::visit(Writer{key}, key.member(experiment));
}

std::string node_text(const toml::node& node, const std::string& text) {
  if (node.is_table()) return "a table";
  if (const toml::array* list = node.as_array()) {
    if (!is_simple(*list)) return "a list";
    std::string elements;
    for (const toml::node& element : *list) elements += (elements.empty() ? "" : ", ") + node_text(element, text);
    return "[" + elements + "]";
  }
  std::ostringstream out;
  if (const auto number = node.value_exact<double>()) {
    // toml++ would write 0.1 with 17 digits
    out << (text.empty() ? number_text(*number) : written_at(node.source(), text));
  } else {
    node.visit([&](const auto& typed) {
      out << toml::toml_formatter{typed, toml::format_flags::allow_unicode_strings};
    });
  }
  return out.str().size() <= longest_text ? out.str() : "a long text";
}

}  // namespace ddprun::config
