// Files and clocks of hosts that share neither.
#include "cli/run/between_hosts.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "comm/joined.hpp"
#include "support/error_of.hpp"
#include "support/read_file.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::run {
namespace {

using comm::join_good;
using namespace std::chrono_literals;
using testing::As;
using testing::failures;
using testing::run_ranks;

constexpr auto kDeadline = 60s;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

TEST_CASE("the offset of a clock is found, for clocks ahead of that of rank 0 and behind it") {
  const auto outcomes = run_ranks(3, As::processes, kDeadline, [](testing::Rank& rank) {
    const auto backend = join_good(rank);
    // In thousands of seconds: 0, 1, -2. A busy machine adds milliseconds to an allgather.
    const int64_t ahead[] = {0, 1'000'000'000'000, -2'000'000'000'000};
    const int64_t mine = ahead[rank.rank()];
    const auto found = clock_offset({*backend, 10s}, [&] { return steady_now() + mine; });
    require(std::llabs(found.count() - mine) < 500'000'000'000,
            "an offset of " + std::to_string(found.count()) + " ns");
    require(rank.rank() != 0 || found.count() == 0, "rank 0 is not its own reference");
  });
  CHECK(failures(outcomes) == "");
}

TEST_CASE("ranks that have one clock have no offset") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [](testing::Rank& rank) {
    require(clock_offset({*join_good(rank), 10s}).count() == 0, "an offset");
  });
  CHECK(failures(outcomes) == "");
}

TEST_CASE("a file is copied to the ranks that want it, whatever its size") {
  const testing::TempDir folder;
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, std::size_t{(4 << 20) + 3}}) {
    std::string text(size, 'x');
    for (std::size_t at = 0; at < size; at += 7) text[at] = static_cast<char>(at * 31);
    const std::string source = (folder.path() / "source").string();
    std::ofstream(source, std::ios::binary) << text;
    const auto outcomes = run_ranks(3, As::processes, kDeadline, [&](testing::Rank& rank) {
      const auto backend = join_good(rank);
      const std::string target = rank.rank() == 0 ? (folder.path() / ("copy" + std::to_string(size))).string() : "";
      const Pass from1 = pass_from({*backend, 20s}, 1);
      rank.rank() == 1 ? send_file(1, source, from1) : receive_file(target, from1);
      require(pass_from({*backend, 20s}, 2)(rank.rank() == 2 ? "of 2" : "") == "of 2", "another text");
    });
    CHECK(failures(outcomes) == "");
    CHECK(testing::read_file(folder.path() / ("copy" + std::to_string(size))) == text);
  }
  CHECK_FALSE(std::filesystem::exists(folder.path() / "copy5.part"));
}

TEST_CASE("a file that cannot be read is an error on all ranks") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [](testing::Rank& rank) {
    const auto backend = join_good(rank);
    const std::string error = testing::error_of([&] {
      const Pass from1 = pass_from({*backend, 10s}, 1);
      rank.rank() == 1 ? send_file(1, "/no/such/file", from1) : receive_file("", from1);
    });
    require(error == "1: rank 1 cannot read /no/such/file: No such file or directory", error);
  });
  CHECK(failures(outcomes) == "");
}

}  // namespace
}  // namespace ddprun::run
