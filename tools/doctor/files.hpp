// Small readers of /proc and /sys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace ddprun::doctor {

// The file's text, at most 1 MiB; "" if it cannot be read.
inline std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(1 << 20, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

inline std::string first_line(const std::string& path) {
  const std::string text = text_of(path);
  return text.substr(0, text.find('\n'));
}

// The first word of `text` as an integer; nothing if it is not one.
inline std::optional<int64_t> number_in(const std::string& text) {
  std::string word;
  std::istringstream(text) >> word;
  return parse_number<int64_t>(word);
}

inline std::optional<int64_t> number_of(const std::string& path) {
  return number_in(text_of(path));
}

// What follows `key` on the line that starts with it; "" if no line does.
inline std::string line_after(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key)) return line.substr(key.size());
  }
  return "";
}

// The names in a folder, sorted; none if it cannot be read.
inline std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "MemTotal:  1024 kB" as bytes.
inline std::optional<int64_t> kibibytes_after(const std::string& text, std::string_view key) {
  const auto number = number_in(line_after(text, key));
  if (!number || *number < 0 || *number > INT64_MAX / 1024) return std::nullopt;
  return *number * 1024;
}

}  // namespace ddprun::doctor
