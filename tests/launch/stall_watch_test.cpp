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

RankPlace place(int rank, int64_t step, Phase phase, int bucket = -1) {
  return {rank, "host" + std::to_string(rank / 2), {step, phase, bucket}};
}

TEST_CASE("a rank for which others wait is named after five seconds, then after ten") {
  StallWatch watch;
  const std::vector<RankPlace> ranks = {place(0, 57, Phase::allreduce, 2), place(1, 57, Phase::allreduce, 2),
                                        place(2, 57, Phase::data)};
  const Lines line = {
      "rank 2 (host1) has been in step 57 phase data for 5 s; 2 ranks wait in step 57 phase allreduce "
      "bucket 2"};
  CHECK(watch.look(ranks, at(0)).empty());
  CHECK(watch.look(ranks, at(4)).empty());
  CHECK(watch.look(ranks, at(5)) == line);
  CHECK(watch.look(ranks, at(6)).empty());
  CHECK(watch.look(ranks, at(10)).size() == 1);
}

TEST_CASE("a long step in which no rank waits is not reported") {
  StallWatch watch;
  const std::vector<RankPlace> ranks = {place(0, 3, Phase::forward), place(1, 3, Phase::backward)};
  for (const int second : {0, 10, 100}) CHECK(watch.look(ranks, at(second)).empty());
}

TEST_CASE("a rank that makes progress is not reported") {
  StallWatch watch;
  for (int second = 0; second < 30; ++second) {
    CHECK(watch.look({place(0, second, Phase::allreduce), place(1, second, Phase::data)}, at(second)).empty());
  }
}

TEST_CASE("ranks that are all in one collective are reported together") {
  StallWatch watch;
  const std::vector<RankPlace> ranks = {place(0, 7, Phase::allreduce, 0), place(1, 7, Phase::allreduce, 0)};
  CHECK(watch.look(ranks, at(0)).empty());
  const Lines line = {
      "all ranks have been in step 7 phase allreduce bucket 0 for 6 s: the network between them may be "
      "down"};
  CHECK(watch.look(ranks, at(6)) == line);
  CHECK(watch.look(ranks, at(7)).empty());
}

TEST_CASE("a rank in the collective of an earlier step is the one that holds the job up") {
  StallWatch watch;
  const std::vector<RankPlace> ranks = {place(0, 8, Phase::allreduce, 0), place(1, 7, Phase::barrier)};
  CHECK(watch.look(ranks, at(0)).empty());
  const Lines line = {
      "rank 1 (host0) has been in step 7 phase barrier for 5 s; 1 rank waits in step 8 phase allreduce "
      "bucket 0"};
  CHECK(watch.look(ranks, at(5)) == line);
}

}  // namespace
