// Wording that messages share: lists of names, and the nearest right name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

// `"a", "b" or "c"`; empty for no words.
std::string quoted_list(const std::vector<std::string>& words, std::string_view last_separator = " or ");

// The nearest of `names` to `word` when it is near enough to be a slip of the hand: ` (did you mean "ring"?)`, else "".
// Near: the optimal string alignment distance (Damerau 1964: insert, delete, replace, swap neighbours), case aside, is
// at most a third of the longer word, or 1.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& names);

// `expected "auto", "ring" or "tree" (did you mean "ring"?)`
std::string expected_one_of(const std::string& word, const std::vector<std::string>& names);

}  // namespace ddprun
