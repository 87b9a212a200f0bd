#include <doctest/doctest.h>

#include <unistd.h>
#include <cmath>

#include <stdexcept>
#include <string>

#include "cli/console/progress_bar.hpp"
#include "support/text.hpp"
#include "support/variable.hpp"

using ddprun::testing::contains;
using ddprun::testing::Variable;
using namespace ddprun::console;

namespace {

// Collects what a bar writes. The frames fit into the pipe's buffer.
class Pipe {
 public:
  Pipe() {
    if (pipe(ends_) != 0) throw std::runtime_error("pipe failed");
  }
  ~Pipe() {
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }
  int in() const { return ends_[1]; }
  std::string text() {
    close(ends_[1]);
    ends_[1] = -1;
    std::string all;
    char buffer[4096];
    for (ssize_t got; (got = read(ends_[0], buffer, sizeof buffer)) > 0;) all.append(buffer, static_cast<size_t>(got));
    return all;
  }

 private:
  int ends_[2];
};

constexpr double kRate = 61234;

}  // namespace

TEST_CASE("the bar fills its terminal's line except the last column, and ends with a carriage return") {
  Pipe pipe;
  ProgressBar(60, pipe.in()).show(1, 3, 50, 100, 0.4321, 0, NAN);
  CHECK(pipe.text() == "\x1b[2Kepoch 1/3  [===========>             ]  50/100  loss 0.4321\r\x1b[2K\r");
}

TEST_CASE("rate and remaining time follow the loss") {
  Pipe pipe;
  ProgressBar(80, pipe.in()).show(1, 3, 50, 100, 0.4321, kRate, 65);
  CHECK(pipe.text().find("loss 0.4321  61,234 samples/s  1 min 05 s left\r") != std::string::npos);
}

TEST_CASE("any text may be before and after the bar") {
  Pipe pipe;
  ProgressBar(40, pipe.in()).show("some.gz  ", 25, 100, "  25 B/s");
  CHECK(pipe.text() == "\x1b[2Ksome.gz  [====>               ]  25 B/s\r\x1b[2K\r");
}

TEST_CASE("a narrow terminal gets a line that is cut to its width") {
  Pipe pipe;
  ProgressBar(20, pipe.in()).show(1, 3, 50, 100, 0.4321, kRate, 65);
  CHECK(pipe.text() == "\x1b[2Kepoch 1/3  [====>  \r\x1b[2K\r");
}

TEST_CASE("without a terminal nothing is written") {
  Pipe pipe;
  {
    ProgressBar bar(0, pipe.in());
    bar.show(1, 1, 1, 1, 0.5, kRate, 0);
    bar.clear();
  }
  CHECK(pipe.text() == "");
}

TEST_CASE("frames in quick succession are dropped, except the last of an epoch") {
  Pipe pipe;
  {
    ProgressBar bar(80, pipe.in());
    for (int step = 1; step <= 100; ++step) bar.show(1, 1, step, 100, 0.5, 0, 0);
  }
  const std::string text = pipe.text();
  CHECK(contains(text, "  1/100"));
  CHECK_FALSE(contains(text, "  2/100"));
  CHECK(contains(text, "[========================================]  100/100"));
}

TEST_CASE("a rank reads the width of its launcher's terminal from DDPRUN_TTY") {
  const Variable term("TERM", "xterm");
  {
    const Variable tty("DDPRUN_TTY", "132");
    CHECK(terminal_columns() == 132);
  }
  for (const char* none : {"0", "", "-5", "80x", "99999999999"}) {
    CAPTURE(none);
    const Variable tty("DDPRUN_TTY", none);
    CHECK(terminal_columns() == 0);
  }
}

TEST_CASE("a dumb terminal gets no bar") {
  const Variable tty("DDPRUN_TTY", "80");
  const Variable term("TERM", "dumb");
  CHECK(terminal_columns() == 0);
}
