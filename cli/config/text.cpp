#include "cli/config/experiment.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

namespace ddprun::config {
namespace {

template <typename... Format>
std::string shortest(double value, Format... format) {
  char buffer[512];  // the longest fixed notation of a double has 1 + 308 + 1 digits, or 2 + 324 + 16
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, format...).ptr;
  return {buffer, end};
}

}  // namespace

std::string number_text(double value) {
  return shortest(value);
}

std::string duration_text(double seconds) {
  return shortest(seconds, std::chars_format::fixed) + "s";
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
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return bare ? key : quoted(key);
}

bool has_control(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool is_utf8(const std::string& text) {
  // toml++ writes each byte of an invalid sequence as a separate character, so such text would not read back equal.
  return toml::parse("text = " + quoted(text)).get("text")->value_exact<std::string>() == text;
}

std::string one_line(const std::string& text) {
  return has_control(text) ? quoted(text) : text;
}

}  // namespace ddprun::config
