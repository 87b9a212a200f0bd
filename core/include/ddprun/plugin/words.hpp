// ddprun/plugin/words.hpp: wording that messages share, in ddprun and in plugins: lists of names, the nearest right
// name, and foreign text that may be printed.
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

// The nearest of `names` to `word`, if `word` may be a typing error of it: ` (did you mean "ring"?)`; otherwise "". It
// may be if their distance is 1, or at most a third of the longer word. The distance counts letters that are inserted,
// deleted or replaced, and neighbours that are swapped, without regard to case (optimal string alignment, Damerau
// 1964). Two words of three letters must begin with the same letter: "gpu" is no typing error of "cpu".
std::string did_you_mean(const std::string& word, const std::vector<std::string>& names);

// `expected "auto", "ring" or "tree" (did you mean "ring"?)`
std::string expected_one_of(const std::string& word, const std::vector<std::string>& names);

}  // namespace ddprun
