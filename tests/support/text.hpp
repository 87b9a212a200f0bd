// Questions about printed text.
#pragma once

#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

namespace ddprun::testing {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The last line that is not empty; "" if there is none.
inline std::string last_line(const std::string& text) {
  std::string last;
  for (const std::string& line : lines_of(text)) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace ddprun::testing
