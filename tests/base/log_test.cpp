#include "base/log.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include "ddprun/error.hpp"
#include "support/read_file.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun {
namespace {

TEST_CASE("lines below the level are dropped, and a file gets all other lines") {
  const testing::TempDir folder;
  const std::string path = (folder.path() / "log").string();
  log::also_to(path);
  log::set_level(log::Level::warning);
  log::info("dropped");
  log::plain("dropped too");
  log::warning("kept");
  log::always("said whatever the level");
  log::set_level(log::Level::info);
  log::info("one");
  log::plain("as it is {}");
  CHECK(testing::read_file(path) == "ddprun: warning: kept\nsaid whatever the level\nddprun: one\nas it is {}\n");
}

TEST_CASE("a line of the log erases the status line first, once") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  CHECK_FALSE(log::status_shown());
  log::draw_status(ends[1], "half");
  CHECK(log::status_shown());
  log::info("a line");
  CHECK_FALSE(log::status_shown());
  log::info("another line");
  log::draw_status(ends[1], "done");
  log::erase_status();
  log::erase_status();
  close(ends[1]);
  char text[100];
  const ssize_t size = read(ends[0], text, sizeof text);
  close(ends[0]);
  CHECK(std::string(text, static_cast<std::size_t>(size)) ==
        "\x1b[2Khalf\r\x1b[2K\r"
        "\x1b[2Kdone\r\x1b[2K\r");
}

TEST_CASE("a log that cannot be written is an error") {
  CHECK_THROWS_AS(log::also_to("/proc/no/such/log"), Error);
}

}  // namespace
}  // namespace ddprun
