// Long lines on a narrow terminal.
#pragma once

#include <string>
#include <string_view>

namespace ddprun {

// The line, without line break, as lines of at most `columns` characters: broken between words, if possible after a
// comma, semicolon, colon or bracket. Later lines are indented: by two spaces, or in a row of a table ("label   text")
// to its text. A longer word stays whole. Unchanged: with 0 columns, and a line that is to be copied ("to resume: ...")
// or has control characters. Of a redrawn line, only what follows the last carriage return is wrapped.
std::string wrapped(std::string_view line, int columns);

// Each line of `text`, with a line break.
std::string wrapped_lines(std::string_view text, int columns);

// The columns of the terminal `fd`, 80 if they are not known; 0 for any other file.
int columns_of(int fd);

}  // namespace ddprun
