#include "tools/predict/forecast.hpp"

#include <doctest/doctest.h>

#include <rapidcheck.h>

#include "support/error_of.hpp"
#include "support/text.hpp"
#include "tools/predict/links.hpp"

using namespace ddprun;
using namespace ddprun::predict;
using testing::contains;
using testing::error_of;

namespace {

Recording some_recording() {
  return {.name = "some",
          .steps = std::vector<StepParts>(20, {0.002, 0.004, 0.001}),
          .buckets = {{1 << 20, 0.5}, {1 << 18, 0}},
          .samples = 64,
          .is_checked = false};
}

// Two sizes between two hosts.
std::vector<BenchRow> rows_of(const std::string& backend, const std::string& name, const Link& link) {
  std::vector<BenchRow> rows;
  for (const double bytes : {4096.0, 1048576.0}) {
    const double seconds = link.seconds(path_between(*algorithm_of(backend, name), {2, 1}, bytes));
    rows.push_back({backend, name, {2, 1}, bytes, seconds});
  }
  return rows;
}

Forecast of_ring(const Recording& recording, const Link& link, const std::vector<int64_t>& hosts = {2, 8, 64}) {
  return forecast(recording, fit_links(rows_of("gloo", "ring", link), 1), hosts, 1);
}

std::vector<BenchRow> operator+(std::vector<BenchRow> a, const std::vector<BenchRow>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("a prediction is the replayed step with the times of the links") {
  const Link link = {1e-4, 1e-9};
  const auto made = of_ring(some_recording(), link);
  REQUIRE(made.methods.size() == 1);
  const auto& rows = made.methods[0].rows;
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].shape.ranks() == 1);
  CHECK(rows[0].step == doctest::Approx(0.007));
  CHECK(rows[0].efficiency == doctest::Approx(1));
  // Bucket 0 in 2 of the 4 ms of backward, then bucket 1.
  const auto seconds = [&](double bytes) { return 14 * link.alpha + 1.75 * bytes * link.beta; };
  const double over = std::max(0.004, 0.002 + seconds(1 << 20)) + seconds(1 << 18);
  CHECK(rows[2].shape.hosts == 8);
  CHECK(rows[2].exposed == doctest::Approx(over - 0.004));
  CHECK(rows[2].step == doctest::Approx(0.003 + over));
  CHECK(rows[2].throughput == doctest::Approx(8 * 64 / (0.003 + over)));
  CHECK(rows[2].efficiency == doctest::Approx(0.007 / (0.003 + over)));
}

TEST_CASE("the comparison of calls takes time between hosts, for each bucket") {
  Recording recording = some_recording();
  const Link link = {1e-4, 1e-9};
  const double without = of_ring(recording, link).methods[0].rows[2].exposed;
  recording.is_checked = true;
  const double with = of_ring(recording, link).methods[0].rows[2].exposed;
  CHECK(with - without == doctest::Approx(2 * 7 * (link.alpha + 32 * link.beta)));
}

TEST_CASE("without communication the efficiency is 1") {
  CHECK(rc::check([] {
    Recording recording = some_recording();
    recording.buckets = {{0, *rc::gen::inRange(0, 101) / 100.0}};
    const auto made = of_ring(recording, {0, *rc::gen::inRange(1, 1000) * 1e-11});
    for (const Predicted& row : made.methods[0].rows) {
      RC_ASSERT(row.efficiency == 1.0);
      RC_ASSERT(row.exposed == 0.0);
    }
    RC_ASSERT(made.methods[0].best.ranks == 64);
  }));
}

TEST_CASE("the typical step is as long as the median one, though each step has another long part") {
  Recording recording = some_recording();
  for (std::size_t i = 0; i < recording.steps.size(); ++i) {
    StepParts& step = recording.steps[i];
    (i % 3 == 0 ? step.forward : i % 3 == 1 ? step.backward : step.optimizer) += 0.007;
  }
  const auto made = of_ring(recording, {0, 1e-15});
  CHECK(made.typical.total() == doctest::Approx(0.014));
  CHECK(made.typical.backward == doctest::Approx(0.008));
  CHECK(made.methods[0].rows[1].step == doctest::Approx(0.014));
}

TEST_CASE("Amdahl: what the optimizer takes is the limit, and communication lowers it") {
  const auto fast = of_ring(some_recording(), {0, 1e-15}), slow = of_ring(some_recording(), {1e-4, 1e-9});
  CHECK(fast.serial() == doctest::Approx(1.0 / 7));
  CHECK(fast.limit() == doctest::Approx(0.007 / (0.006 / 64 + 0.001)));
  CHECK(fast.methods[0].best.ranks == 64);
  CHECK(fast.methods[0].best.times == doctest::Approx(0.007 / (0.006 / 64 + 0.001)).epsilon(1e-3));
  CHECK(slow.methods[0].best.times < fast.methods[0].best.times);
  CHECK(slow.methods[0].best.ranks < 64);
}

TEST_CASE("what is not covered is left out, or refused if there is nothing else") {
  const auto links = fit_links(rows_of("gloo", "ring", {5e-5, 1e-9}) + rows_of("gloo", "tree", {5e-5, 1e-9}), 2);
  const auto made = forecast(some_recording(), links, {1, 2, 4}, 2);
  REQUIRE(made.methods.size() == 1);
  CHECK(made.methods[0].text() == "gloo ring");
  CHECK(made.methods[0].rows.size() == 3);  // not 1 x 2: the ring was not measured within a host
  CHECK(made.left_out ==
        std::vector<std::string>{
            "gloo tree: needs a benchmark of it with 2 ranks on one host (--backend gloo --ranks 2)",
            "gloo hierarchical: needs ring and doubling of gloo between hosts, and shm with 2 ranks on one host"});
  const auto only_tree = fit_links(rows_of("gloo", "tree", {5e-5, 1e-9}), 2);
  CHECK(contains(error_of([&] { forecast(some_recording(), only_tree, {2}, 2); }), "2: gloo tree: needs a benchmark"));
}
