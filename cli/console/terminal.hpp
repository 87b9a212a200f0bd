// The capabilities of a terminal.
#pragma once

#include <string_view>

namespace ddprun::console {

enum class Colours { none, cube256, rgb };  // none: ASCII only; xterm's 256 colours; 24 bits

struct Terminal {
  int columns = 0;  // 0: no terminal, or unknown
  Colours colours = Colours::none;
};

// A variable of the environment; "" where it is unset.
std::string_view variable(const char* name);

// Of an open descriptor. Colours need a terminal, NO_COLOR (no-color.org) unset or empty, a TERM that is not "dumb",
// and COLORTERM=truecolor or 24bit, or a TERM that ends in 256color.
Terminal terminal_of(int fd);

}  // namespace ddprun::console
