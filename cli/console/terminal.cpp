#include "cli/console/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace ddprun::console {
std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

namespace {

Colours colours_of_environment() {
  const std::string_view term = variable("TERM");
  if (term == "dumb" || !variable("NO_COLOR").empty()) return Colours::none;
  const std::string_view kind = variable("COLORTERM");
  if (kind == "truecolor" || kind == "24bit") return Colours::rgb;
  return term.ends_with("256color") ? Colours::cube256 : Colours::none;
}

}  // namespace

Terminal terminal_of(int fd) {
  if (!::isatty(fd)) return {};
  winsize size{};
  const int columns = ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  return {columns, colours_of_environment()};
}

}  // namespace ddprun::console
