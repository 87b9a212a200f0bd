#include <doctest/doctest.h>

#include <cstring>

#include "comm/call.hpp"
#include "comm/joined.hpp"
#include "comm/plugin_backend.hpp"
#include "tools/bench/benchmark.hpp"

namespace ddprun::comm {
namespace {

using namespace std::chrono_literals;

constexpr std::array kKinds = {Kind::allreduce, Kind::broadcast, Kind::allgather, Kind::reduce_scatter};

BenchmarkCase case_of(Kind kind, std::size_t bytes, bool in_place) {
  return {.kind = kind, .dtype = DType::float32, .op = Op::sum, .root = 0, .bytes = bytes, .in_place = in_place};
}

// Counts the collectives of a single process.
class Counting : public ForwardingBackend {
 public:
  explicit Counting(CommBackend& inner) : ForwardingBackend(inner) {}
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    ++allocations;
    return ForwardingBackend::allocate(bytes);
  }

  int64_t calls = 0, barriers = 0, allocations = 0;

 protected:
  Work start(Kind kind, const Collective& call) override {
    ++(kind == Kind::barrier ? barriers : calls);
    return ForwardingBackend::start(kind, call);
  }
};

// A backend that returns stale data: only its first call computes a result.
class Stale final : public Counting {
 public:
  using Counting::Counting;

 protected:
  Work start(Kind kind, const Collective& call) override {
    if (kind != Kind::barrier && calls++ > 0) return {*this, stale_};
    return Counting::start(kind, call);
  }

 private:
  Request stale_{{"stale", "memory"}};
};

std::vector<std::string> single_gather(std::string_view value) {
  return {std::string(value)};
}

// Measures the case on each rank of `plugin`, and reports the wrong elements.
std::vector<testing::Outcome> measured_by(const std::string& plugin, int ranks, const BenchmarkCase& what) {
  return testing::run_ranks(ranks, testing::As::processes, 30s, [&](testing::Rank& rank) {
    const auto backend = join(fake(plugin), options_of(rank));
    const auto gather = [&](std::string_view mine) {
      uint64_t longest = mine.size();
      std::vector<uint64_t> lengths(static_cast<std::size_t>(rank.size()));
      rank.allgather(&longest, sizeof longest, lengths.data());
      longest = *std::max_element(lengths.begin(), lengths.end());
      std::string padded(mine), all(longest * lengths.size(), '\0');
      padded.resize(longest);
      rank.allgather(padded.data(), longest, all.data());
      std::vector<std::string> values;
      for (std::size_t peer = 0; peer < lengths.size(); ++peer) {
        values.push_back(all.substr(peer * longest, lengths[peer]));
      }
      return values;
    };
    Benchmark benchmark(*backend, gather, {.samples = 3, .warmup = 1, .checks = 2}, what.bytes);
    const BenchmarkResult result = benchmark.measure(what);
    rank.report(std::to_string(result.wrong));
    rank.report(std::to_string(result.seconds.size()));
    rank.report(result.execution.algorithm);
  });
}

TEST_CASE("sizes, counts and busbw are those of nccl-tests") {
  const auto reduce = case_of(Kind::allreduce, 1026, false), gather = case_of(Kind::allgather, 1026, false);
  CHECK(count_of(reduce, 3) == 256);
  CHECK(bytes_of(reduce, 3) == 1024);
  CHECK(count_of(gather, 3) == 85);  // of one rank
  CHECK(bytes_of(gather, 3) == 1020);
  CHECK(count_of(case_of(Kind::reduce_scatter, 4, false), 2) == 0);
  CHECK(bus_factor(Kind::allreduce, 4) == doctest::Approx(1.5));
  CHECK(bus_factor(Kind::allgather, 4) == doctest::Approx(0.75));
  CHECK(bus_factor(Kind::reduce_scatter, 2) == doctest::Approx(0.5));
  CHECK(bus_factor(Kind::broadcast, 4) == 1);
}

TEST_CASE("a case makes the configured number of calls, and the next case reuses its buffers") {
  const auto inner = single_process_backend();
  Counting backend(*inner);
  Benchmark benchmark(backend, single_gather, {.samples = 7, .warmup = 3, .checks = 2}, 1 << 20);
  const auto result = benchmark.measure(case_of(Kind::allreduce, 1 << 20, false));
  CHECK(result.seconds.size() == 7);
  for (const double seconds : result.seconds) CHECK(seconds > 0);
  // Checks, calls to find the batch, warm-up, samples.
  CHECK(backend.calls == 2 + 3 + 3 + 7 * result.batch);
  CHECK(backend.barriers == 1);
  CHECK(result.execution.algorithm == "identity");

  auto what = case_of(Kind::allreduce, 4, false);
  what.source = Source::backend;
  benchmark.measure(what);
  benchmark.measure(what);
  CHECK(backend.allocations == 2);
}

TEST_CASE("the ranks of one host compare their clocks; between hosts each counts from its own first stamp") {
  for (const bool one_clock : {true, false}) {
    const auto backend = single_process_backend();
    BenchmarkOptions options;
    options.samples = 3;
    options.one_clock = one_clock;
    std::vector<int64_t> stamps;
    const auto gather = [&](std::string_view value) {
      if (value.size() == 4 * sizeof(int64_t)) {
        stamps.resize(4);
        std::memcpy(stamps.data(), value.data(), value.size());
      }
      return single_gather(value);
    };
    const auto result = Benchmark(*backend, gather, options, 64).measure(case_of(Kind::allreduce, 64, false));
    REQUIRE(stamps.size() == 4);
    CHECK((stamps[0] == 0) == !one_clock);
    CHECK(result.seconds.size() == 3);
    for (const double seconds : result.seconds) CHECK(seconds > 0);
  }
}

TEST_CASE("calls too short for the clock are timed in batches") {
  const auto inner = single_process_backend();
  Counting backend(*inner);
  Benchmark benchmark(backend, single_gather, {.samples = 2, .warmup = 10, .checks = 0}, 4);
  CHECK(benchmark.measure(case_of(Kind::allreduce, 4, true)).batch > 1);
}

TEST_CASE("correct results are distinguished from those of an earlier call") {
  for (const bool in_place : {false, true}) {
    for (const Kind kind : kKinds) {
      CAPTURE(name_of(kind));
      const auto inner = single_process_backend();
      Counting good(*inner);
      Benchmark right(good, single_gather, {.samples = 1, .warmup = 0, .checks = 3}, 4096);
      CHECK(right.measure(case_of(kind, 4096, in_place)).wrong == 0);
    }
    if (in_place) continue;  // with one rank, doing nothing is correct in place
    const auto inner = single_process_backend();
    Stale stale(*inner);
    Benchmark wrong(stale, single_gather, {.samples = 1, .warmup = 0, .checks = 3}, 4096);
    CHECK(wrong.measure(case_of(Kind::allreduce, 4096, false)).wrong > 2 * 1000);
  }
}

TEST_CASE("all ranks detect a backend that is off by one in its last element") {
  for (const bool in_place : {false, true}) {
    const auto outcomes = measured_by("off_by_one", 2, case_of(Kind::allreduce, 4096, in_place));
    CHECK(testing::failures(outcomes) == "");
    // One element, in two checks, on two ranks.
    for (const auto& outcome : outcomes) CHECK(outcome.records == std::vector<std::string>{"4", "3", "slots"});
  }
}

TEST_CASE("every collective of a working backend is correct, in place and out of place") {
  for (const bool in_place : {false, true}) {
    for (const Kind kind : kKinds) {
      CAPTURE(name_of(kind));
      const auto outcomes = measured_by("good", 3, case_of(kind, 6000, in_place));
      CHECK(testing::failures(outcomes) == "");
      for (const auto& outcome : outcomes) CHECK(outcome.records == std::vector<std::string>{"0", "3", "slots"});
    }
  }
}

}  // namespace
}  // namespace ddprun::comm
