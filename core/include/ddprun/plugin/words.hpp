// ddprun/plugin/words.hpp: wording that messages share, in ddprun and in plugins: lists of names, the nearest right name, and
// foreign text that may be printed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddprun {
// Foreign text as it may stand in a line and on a terminal: in place of each byte of a control character (C0, DEL, C1)
// and of what is no UTF-8 stands '?'.
std::string printable(std::string_view text);

// `"a", "b" or "c"`; empty for no words.
std::string quoted_list(const std::vector<std::string>& words, std::string_view last_separator = " or ");

// The nearest of `names` to `word` when it is near enough to be a slip of the hand: ` (did you mean "ring"?)`, else "".
// Near: the optimal string alignment distance (Damerau 1964: insert, delete, replace, swap neighbours), case aside, is
// at most a third of the longer word, or 1. Between two words of three letters the first has to be right: who writes
// "gpu" did not mean "cpu".
std::string did_you_mean(const std::string& word, const std::vector<std::string>& names);

// `expected "auto", "ring" or "tree" (did you mean "ring"?)`
std::string expected_one_of(const std::string& word, const std::vector<std::string>& names);

}  // namespace ddprun
