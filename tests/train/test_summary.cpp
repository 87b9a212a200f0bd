#include "support/torch_test.hpp"

#include "comm/joined.hpp"
#include "fit.hpp"
#include "record/environment.hpp"
#include "touch_pages.hpp"

namespace ddprun::train {
namespace {

using testing::As;
using testing::failures;
using testing::run_ranks;

constexpr auto kDeadline = std::chrono::seconds(60);
constexpr int64_t kMore = int64_t{256} << 20;
constexpr std::size_t kPages = 2000;

TEST_CASE("the summary's peak memory and page faults are the most of any rank, on every rank") {
  CHECK(failures(run_ranks(2, As::processes, kDeadline, [&](testing::Rank& rank) {
          const bool greedy = rank.rank() == 1;
          const int64_t before = record::peak_memory_bytes();
          if (greedy) testing::touch_pages(static_cast<std::size_t>((before + kMore) / sysconf(_SC_PAGESIZE)) + 1);
          const auto backend = comm::join_good(rank);
          Fit<LineModel> fit(rank.rank(), 2, 40, 2, data::Last::pad);
          if (greedy) fit.notes.at_step = [] { testing::touch_pages(kPages); };
          const auto summary = fit.run_ddp({std::nullopt, 10, false, 0}, *backend);
          const int64_t own = record::peak_memory_bytes();
          require(greedy ? own >= before + kMore : own < before + kMore / 2, "a rank's own peak");
          require(summary.peak_memory_bytes >= before + kMore, "peak memory of the job");
          require(summary.page_faults >= static_cast<double>(kPages) / 2, "page faults of the job");
        })) == "");
}

}  // namespace
}  // namespace ddprun::train
