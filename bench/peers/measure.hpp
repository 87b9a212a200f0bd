// Times the allreduce of a peer as `ddprun bench` times that of a plugin, so that their figures are comparable
// (tools/bench/benchmark.cpp; docs/benchmarking.md describes the method): one in-place float32 sum per sample, back to
// back, in batches if reading the clock would be noticeable; a sample ends when the last rank has ended it. A peer is
// called through its own interface, without ddprun.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace peers {

struct Options {
  int64_t samples = 20;
  int64_t warmup = 5;
  std::vector<std::size_t> sizes;  // in bytes, multiples of 4

  std::size_t largest() const { return *std::max_element(sizes.begin(), sizes.end()); }
};

// SAMPLES WARMUP SIZE... from argv[first] on. Throws std::invalid_argument.
inline Options parse(int argc, char** argv, int first) {
  if (argc < first + 3) throw std::invalid_argument("expected SAMPLES WARMUP SIZE...");
  Options options{std::stoll(argv[first]), std::stoll(argv[first + 1]), {}};
  for (int i = first + 2; i < argc; ++i) options.sizes.push_back(std::stoull(argv[i]));
  const auto whole = [](std::size_t size) { return size > 0 && size % sizeof(float) == 0; };
  if (options.samples < 1 || options.warmup < 0 || !std::all_of(options.sizes.begin(), options.sizes.end(), whole)) {
    throw std::invalid_argument("expected SAMPLES from 1, WARMUP from 0, SIZEs that are multiples of 4");
  }
  return options;
}

// CLOCK_MONOTONIC: the same for all processes of a host.
inline int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Nanoseconds per reading of the clock: the minimum of a few runs.
inline double clock_cost() {
  constexpr int kReadings = 1000;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int run = 0; run < 5; ++run) {
    const int64_t begin = now();
    int64_t end = begin;
    for (int i = 0; i < kReadings; ++i) end = now();
    least = std::min(least, end - begin);
  }
  return static_cast<double>(least) / kReadings;
}

// Small integers: their sums are exact in every order.
inline float value(int rank, std::size_t index) {
  return static_cast<float>((index * 7 + static_cast<std::size_t>(rank) * 13) % 101);
}

// A Group is the communicator of one rank:
//   int rank, size;
//   float* allocate(std::size_t bytes);              // called once; the best memory for the peer
//   void prepare(float* data, std::size_t count);    // before the first call with this count
//   void allreduce(float* data, std::size_t count);  // in place
//   void barrier();
//   std::vector<int64_t> gather(const std::vector<int64_t>& own);   // of all ranks, in rank order
template <class Group>
class Measurement {
 public:
  Measurement(Group& group, const Options& options)
      : group_(group), options_(options), data_(group.allocate(options.largest())) {
    std::memset(data_, 0, options.largest());
  }

  // Prints a line of JSON per size on rank 0.
  void run(const std::string& library) {
    for (const std::size_t size : options_.sizes) {
      count_ = size / sizeof(float);
      group_.prepare(data_, count_);
      const int64_t wrong = check();
      std::memset(data_, 0, size);  // other values would grow with every sum in place
      const int64_t batch = batch_of();
      const std::vector<double> seconds = time(batch);
      if (group_.rank != 0) continue;
      std::printf("{\"library\": \"%s\", \"size\": %zu, \"batch\": %lld, \"wrong\": %lld, \"samples\": [",
                  library.c_str(), size, static_cast<long long>(batch), static_cast<long long>(wrong));
      for (std::size_t i = 0; i < seconds.size(); ++i) std::printf("%s%.9g", i == 0 ? "" : ", ", seconds[i]);
      std::printf("]}\n");
      std::fflush(stdout);
    }
  }

 private:
  void call(int64_t times) {
    for (int64_t i = 0; i < times; ++i) group_.allreduce(data_, count_);
  }

  // Wrong elements on all ranks, after one call.
  int64_t check() {
    for (std::size_t i = 0; i < count_; ++i) data_[i] = value(group_.rank, i);
    call(1);
    int64_t wrong = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      float sum = 0;
      for (int rank = 0; rank < group_.size; ++rank) sum += value(rank, i);
      wrong += data_[i] != sum;
    }
    int64_t total = 0;
    for (const int64_t each : group_.gather({wrong})) total += each;
    return total;
  }

  // The number of calls that limits the clock's cost to 1 %, from the quickest of a few.
  int64_t batch_of() {
    constexpr double kClockShare = 0.01;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int64_t i = 0; i < std::max<int64_t>(options_.warmup, 1); ++i) {
      const int64_t begin = now();
      call(1);
      least = std::min(least, now() - begin);
    }
    const double calls = std::ceil(clock_cost() / kClockShare / static_cast<double>(std::max<int64_t>(least, 1)));
    const std::vector<int64_t> batches = group_.gather({static_cast<int64_t>(calls)});
    return std::max<int64_t>(1, *std::max_element(batches.begin(), batches.end()));
  }

  // Seconds of one call, per sample: since the last rank ended the previous sample.
  std::vector<double> time(int64_t batch) {
    std::vector<int64_t> stamps(static_cast<std::size_t>(options_.samples) + 1);
    group_.barrier();
    call(options_.warmup);
    stamps[0] = now();
    for (std::size_t i = 1; i < stamps.size(); ++i) {
      call(batch);
      stamps[i] = now();
    }
    std::vector<int64_t> last(stamps.size(), 0);
    const std::vector<int64_t> all = group_.gather(stamps);
    for (std::size_t i = 0; i < all.size(); ++i) last[i % last.size()] = std::max(last[i % last.size()], all[i]);
    std::vector<double> seconds;
    for (std::size_t i = 1; i < last.size(); ++i) {
      seconds.push_back(static_cast<double>(last[i] - last[i - 1]) * 1e-9 / static_cast<double>(batch));
    }
    return seconds;
  }

  Group& group_;
  const Options options_;
  float* const data_;
  std::size_t count_ = 0;
};

}  // namespace peers
