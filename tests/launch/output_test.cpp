#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <thread>

#include "base/unique_fd.hpp"
#include "launch/job_output.hpp"

namespace {

using namespace ddprun::launch;

// A screen whose output the test reads.
struct Fixture {
  explicit Fixture(bool is_terminal = false) {
    REQUIRE(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0);
    read_end = ddprun::UniqueFd(ends[0]);
    write_end = ddprun::UniqueFd(ends[1]);
    screen.emplace(write_end.get(), is_terminal);
  }

  std::string shown() {
    screen->write_some();
    std::array<char, 65536> buffer;
    const ssize_t got = read(read_end.get(), buffer.data(), buffer.size());
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    return text;
  }

  std::array<int, 2> ends{};
  ddprun::UniqueFd read_end, write_end;
  std::optional<Screen> screen;
  std::string text;
};

TEST_CASE("a line comes between the parts of rank 0's line as a line of its own") {
  Fixture f;
  f.screen->line("one", true);
  f.screen->line("[rank1] two");
  f.screen->part("thr");
  f.screen->line("ee", true);
  f.screen->part("no end");
  f.screen->line("ddprun: failed");
  CHECK(f.shown() == "one\n[rank1] two\nthree\nno end\nddprun: failed\n");
}

TEST_CASE("a progress bar is erased on a terminal and ended elsewhere") {
  Fixture terminal(true);
  terminal.screen->part("\r 50% [==  ]");
  terminal.screen->line("[rank1] a");
  terminal.screen->part("\r 75% [=== ]");
  CHECK(terminal.shown() == "\r 50% [==  ]\r\x1b[K[rank1] a\n\r 75% [=== ]");
  Fixture file;
  file.screen->part(" 50%\r");
  file.screen->line("[rank1] a");
  CHECK(file.shown() == " 50%\r\n[rank1] a\n");
}

TEST_CASE("a reader that does not read does not block the writer, and gets everything in the end") {
  Fixture f;
  std::string expected;
  for (int i = 0; !f.screen->full(); ++i) {
    expected += "line " + std::to_string(i) + "\n";
    f.screen->line("line " + std::to_string(i));
    f.screen->write_some();
  }
  std::thread writer([&] { f.screen->flush(); });
  std::string got;
  std::array<char, 65536> buffer;
  while (got.size() < expected.size()) {
    const ssize_t bytes = read(f.read_end.get(), buffer.data(), buffer.size());
    if (bytes > 0) got.append(buffer.data(), static_cast<std::size_t>(bytes));
  }
  writer.join();
  CHECK(got == expected);
}

TEST_CASE("after the reader has closed the pipe the rest is dropped") {
  std::signal(SIGPIPE, SIG_IGN);
  Fixture f;
  f.read_end.reset();
  f.screen->line("nobody reads this");
  f.screen->flush();
  CHECK(f.screen->broken() == EPIPE);
  CHECK(!f.screen->pending());
}

}  // namespace
