// Joins words as an English list.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ddprun {

// "a", "a and b", "a, b and c"; empty for no words.
inline std::string enumerated(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace ddprun
