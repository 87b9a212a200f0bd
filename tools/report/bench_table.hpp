// The figures of `ddprun bench` in the columns of nccl-tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ddprun::report {

// Times in seconds, bandwidths in bytes per second.
struct BenchLine {
  std::size_t bytes = 0;
  std::size_t count = 0;  // elements
  std::string type, op;   // op is "none" without a reduction
  std::string backend;
  std::string algorithm;  // requested
  std::string served;     // "ring over tcp"
  std::string buffer;     // who allocated the memory
  bool in_place = false;
  double median = 0, p95 = 0, least = 0;
  double algbw = 0, busbw = 0;
  std::optional<uint64_t> wrong;  // elements; none: not checked
};

// With a header line; times are printed in us, bandwidths in GB/s (10^9).
std::string bench_table(const std::vector<BenchLine>& lines);

}  // namespace ddprun::report
