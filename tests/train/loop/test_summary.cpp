#include "support/torch_test.hpp"

#include "comm/joined.hpp"
#include "record/environment.hpp"
#include "train/fit.hpp"

namespace ddprun::train {
namespace {

using testing::As;
using testing::failures;
using testing::run_ranks;

constexpr int64_t kMore = int64_t{256} << 20;

TEST_CASE("the summary's peak memory is the maximum over the ranks, on every rank") {
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          const bool greedy = rank.rank() == 1;
          const int64_t before = record::peak_memory_bytes();
          const std::vector<char> touched(static_cast<std::size_t>(greedy ? before + kMore : 1), 'x');
          require(touched.back() == 'x', "memory");
          const auto backend = comm::join_good(rank);
          Fit<LineModel> fit(rank.rank(), 2, 40, 2, Last::pad);
          const auto summary = fit.run_ddp({std::nullopt, 10, false, {0}}, *backend);
          const int64_t own = record::peak_memory_bytes();
          require(greedy ? own >= before + kMore : own < before + kMore / 2, "a rank's own peak");
          require(summary.peak_memory_bytes >= before + kMore, "peak memory of the job");
        })) == "");
}

TEST_CASE("the summary reports the bytes that a step allreduces, and the speed") {
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          const auto backend = comm::join_good(rank);
          Fit<LineModel> fit(rank.rank(), 2, 40, 2, Last::pad);
          const auto summary = fit.run_ddp({std::nullopt, 3, false, {0}}, *backend);
          require(summary.comm_bytes == 3 * sizeof(float), "bytes");
          require(summary.comm_time > 0, "time");
          // 2 (n - 1) / n is 1 for two ranks.
          require(summary.comm_busbw == static_cast<double>(summary.comm_bytes) / summary.comm_time, "busbw");
        })) == "");
  Fit<LineModel> alone(0, 1, 40, 2, Last::pad);
  const auto summary = alone.run_single({std::nullopt, 3, false, {0}});
  CHECK(summary.comm_bytes == -1);
  CHECK(std::isnan(summary.comm_busbw));
}

}  // namespace
}  // namespace ddprun::train
