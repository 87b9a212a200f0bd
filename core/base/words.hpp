// Wording that messages share: lists of names, and the nearest right name.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

// "a", "b" or "c"; empty for no words.
inline std::string quoted_list(const std::vector<std::string>& words, std::string_view last_separator = " or ") {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? last_separator : std::string_view(", ");
    text += '"' + words[i] + '"';
  }
  return text;
}

// How many insertions, deletions, replacements or swaps of neighbours turn a into b (optimal string alignment).
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
    above = row;
  }
  return above[b.size()];
}

// The candidate that word was probably meant to be; empty when none is near (more than a third of the letters differ).
inline std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

// ` (did you mean "ring"?)`, or nothing.
inline std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string name = nearest(word, candidates);
  return name.empty() ? "" : " (did you mean \"" + name + "\"?)";
}

}  // namespace ddprun
