#include "launch/stall_watch.hpp"

#include <doctest/doctest.h>

namespace {

using namespace ddprun;
using namespace ddprun::launch;
using std::chrono::seconds;
using Lines = std::vector<std::string>;

StallWatch::Clock::time_point at(int second) {
  return StallWatch::Clock::time_point(seconds(1000 + second));
}

// The lines; those of a rank that hangs must name it.
Lines check(StallWatch& watch, const std::vector<RankProgress>& ranks, StallWatch::Clock::time_point now) {
  Lines lines;
  for (const StallWatch::Line& line : watch.check(ranks, now)) {
    lines.push_back(line.text);
    if (line.text.find(" has been ") != std::string::npos) {
      CHECK(line.text.starts_with("rank " + std::to_string(line.stuck ? line.stuck->rank : -1) + " "));
    } else {
      CHECK_FALSE(line.stuck);
    }
  }
  return lines;
}

RankProgress at_step(int rank, int64_t step, Phase phase, int bucket = -1) {
  return {rank, "host" + std::to_string(rank / 2), {step, phase, bucket}};
}

TEST_CASE("a rank for which others wait is named after five seconds, then after ten") {
  StallWatch watch;
  const std::vector<RankProgress> ranks = {at_step(0, 57, Phase::allreduce, 2), at_step(1, 57, Phase::allreduce, 2),
                                           at_step(2, 57, Phase::data)};
  const Lines line = {
      "rank 2 (host1) has been in step 57 phase data for 5 s; 2 ranks wait in step 57 phase allreduce "
      "bucket 2"};
  CHECK(check(watch, ranks, at(0)).empty());
  CHECK(check(watch, ranks, at(4)).empty());
  CHECK(check(watch, ranks, at(5)) == line);
  CHECK(check(watch, ranks, at(6)).empty());
  CHECK(check(watch, ranks, at(10)).size() == 1);
}

TEST_CASE("a time in which nobody watched the ranks does not count") {
  StallWatch watch;
  const std::vector<RankProgress> ranks = {at_step(0, 57, Phase::allreduce, 2), at_step(1, 57, Phase::data)};
  for (const int second : {0, 1, 31, 35}) CHECK(check(watch, ranks, at(second)).empty());
  CHECK(check(watch, ranks, at(36)).size() == 1);
}

TEST_CASE("a rank that was named hangs until it moves, and the ranks that wait for it do not") {
  StallWatch watch;
  std::vector<RankProgress> ranks = {at_step(0, 57, Phase::allreduce, 2), at_step(1, 57, Phase::data)};
  for (const int second : {0, 4}) check(watch, ranks, at(second));
  CHECK_FALSE(watch.hangs(1, ranks[1].progress));
  check(watch, ranks, at(5));
  CHECK(watch.hangs(1, ranks[1].progress));
  CHECK_FALSE(watch.hangs(0, ranks[0].progress));
  CHECK_FALSE(watch.hangs(1, at_step(1, 57, Phase::forward).progress));
  ranks[1] = at_step(1, 57, Phase::forward);
  check(watch, ranks, at(6));
  CHECK_FALSE(watch.hangs(1, ranks[1].progress));
}

TEST_CASE("a rank that another host has named hangs until it moves") {
  StallWatch watch;
  const Progress there = at_step(1, 57, Phase::data).progress;
  watch.note_hang(at_step(1, 57, Phase::data));
  CHECK(watch.hangs(1, there));
  CHECK_FALSE(watch.hangs(0, there));
  CHECK_FALSE(watch.hangs(1, at_step(1, 58, Phase::data).progress));
}

TEST_CASE("a long step in which no rank waits is not reported") {
  StallWatch watch;
  const std::vector<RankProgress> ranks = {at_step(0, 3, Phase::forward), at_step(1, 3, Phase::backward)};
  for (const int second : {0, 10, 100}) CHECK(check(watch, ranks, at(second)).empty());
}

TEST_CASE("a rank that makes progress is not reported") {
  StallWatch watch;
  for (int second = 0; second < 30; ++second) {
    CHECK(check(watch, {at_step(0, second, Phase::allreduce), at_step(1, second, Phase::data)}, at(second)).empty());
  }
}

TEST_CASE("ranks that are all in one collective are reported together") {
  StallWatch watch;
  const std::vector<RankProgress> ranks = {at_step(0, 7, Phase::allreduce, 0), at_step(1, 7, Phase::allreduce, 0)};
  CHECK(check(watch, ranks, at(0)).empty());
  const Lines line = {
      "all ranks have been in step 7 phase allreduce bucket 0 for 6 s: the network between them may be "
      "down"};
  CHECK(check(watch, ranks, at(3)).empty());
  CHECK(check(watch, ranks, at(6)) == line);
  CHECK(check(watch, ranks, at(7)).empty());
}

TEST_CASE("a rank in the collective of an earlier step is the one that holds the job up") {
  StallWatch watch;
  const std::vector<RankProgress> ranks = {at_step(0, 8, Phase::allreduce, 0), at_step(1, 7, Phase::barrier)};
  CHECK(check(watch, ranks, at(0)).empty());
  const Lines line = {
      "rank 1 (host0) has been in step 7 phase barrier for 5 s; 1 rank waits in step 8 phase allreduce "
      "bucket 0"};
  CHECK(check(watch, ranks, at(5)) == line);
}

// Ranks that compute for so many milliseconds in a step.
std::vector<RankProgress> ranks_with(const std::vector<int64_t>& own_ms) {
  std::vector<RankProgress> ranks;
  for (const int64_t own : own_ms) {
    ranks.push_back({static_cast<int>(ranks.size()), "host", {7, Phase::forward, -1, own * 1000}});
  }
  return ranks;
}

TEST_CASE("a rank that is much slower than the median of the others is named at once, and again after a minute") {
  StallWatch watch;
  const Lines line = {
      "rank 1 (host) is slow: its own part of a step takes 410 ms, that of the other ranks 40 ms; they wait for it"};
  CHECK(check(watch, ranks_with({40, 410, 41, 39}), at(0)) == line);
  for (int second = 5; second < 60; second += 5) CHECK(check(watch, ranks_with({40, 410, 41, 39}), at(second)).empty());
  CHECK(check(watch, ranks_with({40, 410, 41, 39}), at(59)).empty());
  CHECK(check(watch, ranks_with({40, 410, 41, 39}), at(60)) == line);
}

TEST_CASE("a rank that is ten times slower than ranks with steps of 10 ms is named at once") {
  StallWatch watch;
  CHECK(check(watch, ranks_with({10, 100}), at(0)).size() == 1);
}

TEST_CASE("ranks that all become slower are not named while the progress of some is old") {
  StallWatch watch(std::chrono::milliseconds(1200));
  CHECK(check(watch, ranks_with({70, 10, 10}), at(0)).empty());
  CHECK(check(watch, ranks_with({70, 10, 10}), at(1)).empty());
  CHECK(check(watch, ranks_with({70, 70, 70}), at(2)).empty());
  CHECK(check(watch, ranks_with({70, 10, 10}), at(3)).empty());
  CHECK(check(watch, ranks_with({70, 10, 10}), at(5)).size() == 1);
}

TEST_CASE("noise is not reported, nor a rank that is less than four times slower") {
  StallWatch watch;
  for (int second = 0; second < 9; ++second) CHECK(check(watch, ranks_with({1, 41, 1}), at(second)).empty());
  for (int second = 0; second < 9; ++second) CHECK(check(watch, ranks_with({400, 1590, 410}), at(second)).empty());
  // One of them is not known.
  for (int second = 0; second < 9; ++second) CHECK(check(watch, ranks_with({0, 790}), at(second)).empty());
}

}  // namespace
