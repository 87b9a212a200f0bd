#include "config/text.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "config/experiment.hpp"

namespace ddprun::config {
namespace {

template <typename... Format>
std::string shortest(double value, Format... format) {
  char buffer[512];  // the longest fixed notation of a double has 1 + 308 + 1 digits, or 2 + 324 + 16
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, format...).ptr;
  return {buffer, end};
}

// Optimal string alignment: Levenshtein's distance, with the swap of two neighbours as one step.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

}  // namespace

std::string number_text(double value) {
  return shortest(value);
}

std::string duration_text(double seconds) {
  return shortest(seconds, std::chars_format::fixed) + "s";
}

std::optional<double> read_duration(const std::string& text) {
  if (text.empty() || text.front() < '0' || text.front() > '9')
    return {};  // from_chars takes "-1", "inf" and "nan" too
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{}) return {};
  const std::string unit(end, text.data() + text.size());
  if (unit == "ms") return value / 1000;
  if (unit == "s") return value;
  if (unit == "m") return value * 60;
  if (unit == "h") return value * 3600;
  return {};
}

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::toml_formatter{toml::value<std::string>(text), toml::format_flags::allow_unicode_strings};
  return out.str();
}

std::string key_text(const std::string& key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return bare ? key : quoted(key);
}

std::string either(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += quoted(words[i]);
  }
  return text;
}

bool has_control(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool is_utf8(const std::string& text) {
  // toml++ writes each byte of a broken sequence as a character of its own, so that such text does not come back.
  return toml::parse("text = " + quoted(text)).get("text")->value_exact<std::string>() == text;
}

std::string one_line(const std::string& text) {
  return has_control(text) ? quoted(text) : text;
}

std::string expected_one_of(const std::string& word, const std::vector<std::string>& names) {
  return "expected " + either(names) + did_you_mean(word, names);
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& names) {
  constexpr std::size_t longest_word = 100;  // beyond it no slip of the hand, and the table of distances grows large
  if (word.size() > longest_word) return "";
  const std::string* nearest = nullptr;
  std::size_t least = 0;
  for (const std::string& name : names) {
    if (name == word || name.size() > longest_word) continue;
    const std::size_t steps = distance(lower(word), lower(name));
    const std::size_t limit = std::max<std::size_t>(1, std::max(word.size(), name.size()) / 3);
    if (steps > limit || steps >= std::min(word.size(), name.size())) continue;
    if (nearest == nullptr || steps < least) {
      nearest = &name;
      least = steps;
    }
  }
  return nearest == nullptr ? "" : " (did you mean " + quoted(*nearest) + "?)";
}

}  // namespace ddprun::config
