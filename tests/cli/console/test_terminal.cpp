#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "cli/console/progress_bar.hpp"
#include "support/pty.hpp"
#include "support/variable.hpp"

using namespace ddprun::console;
using ddprun::testing::Pty;
using ddprun::testing::Variable;

namespace {

Colours colours(const char* term, std::optional<std::string> colorterm, std::optional<std::string> no_color = {}) {
  const Variable first("TERM", term), second("COLORTERM", std::move(colorterm)), third("NO_COLOR", std::move(no_color));
  return terminal_of(Pty(80).fd()).colours;
}

}  // namespace

TEST_CASE("a terminal has its columns, anything else has none and no colours") {
  const Variable term("TERM", "xterm-256color"), colorterm("COLORTERM", "truecolor"), no_color("NO_COLOR", {});
  CHECK(terminal_of(Pty(80).fd()).columns == 80);
  CHECK(terminal_of(Pty(132).fd()).columns == 132);
  const int null = open("/dev/null", O_WRONLY);
  for (const int fd : {null, -1}) {
    CHECK(terminal_of(fd).columns == 0);
    CHECK(terminal_of(fd).colours == Colours::none);
  }
  close(null);
}

TEST_CASE("COLORTERM and TERM select the colours, NO_COLOR and a dumb terminal disable them") {
  CHECK(colours("xterm", "truecolor") == Colours::rgb);
  CHECK(colours("xterm", "24bit") == Colours::rgb);
  CHECK(colours("xterm-256color", {}) == Colours::cube256);
  CHECK(colours("xterm-256color", "") == Colours::cube256);
  CHECK(colours("xterm", {}) == Colours::none);
  CHECK(colours("dumb", "truecolor") == Colours::none);
  CHECK(colours("xterm-256color", "truecolor", "1") == Colours::none);
  CHECK(colours("xterm-256color", "truecolor", "") == Colours::rgb);
}
