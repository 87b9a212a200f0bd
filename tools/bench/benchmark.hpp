// One rank's part of a benchmark: checks and times collectives of a backend, as nccl-tests does
// (https://github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md). docs/benchmarking.md has the method in words.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/call.hpp"
#include "ddprun/comm_backend.hpp"
#include "tools/lib/buffer_memory.hpp"

namespace ddprun::comm {

// Each call has its own `seed`. The numbers are small integers (for product: 1 and -1), so that sum, min, max and
// product are exact in every order and dtype, for up to 256 ranks; int8 and uint8 may wrap. An average may be off by
// its roundings (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., lemma 3.1). Any thread.
struct Pattern {
  DType dtype = DType::float32;
  Op op = Op::sum;
  int ranks = 1;
  uint64_t seed = 0;
};

// Elements first, first + 1, ..., first + count - 1 of `rank` into data.
void fill(const Pattern& pattern, int rank, std::size_t first, std::size_t count, void* data);

// How many of the elements in data are not those of fill() with the same arguments.
uint64_t wrong_copies(const Pattern& pattern, int rank, std::size_t first, std::size_t count, const void* data);

// How many are not the reduction of those elements over all ranks.
uint64_t wrong_reductions(const Pattern& pattern, std::size_t first, std::size_t count, const void* data);

// Where the buffers of a case come from.
enum class Source { backend, malloc };  // CommBackend::allocate, or malloc (on a GPU: cudaMalloc)

struct BenchmarkCase {
  Kind kind = Kind::allreduce;
  DType dtype = DType::float32;
  Op op = Op::sum;        // allreduce, reduce_scatter
  int root = 0;           // broadcast
  std::size_t bytes = 0;  // as asked for; bytes_of() is what is moved
  bool in_place = false;  // always true of a broadcast, which has one buffer
  Source source = Source::malloc;
};

// Elements of one rank: bytes / size_of(dtype); of the ranks' share in an allgather or a reduce_scatter. May be 0.
std::size_t count_of(const BenchmarkCase& what, int ranks);
// Bytes of the larger of a rank's two buffers: nccl-tests' "size".
std::size_t bytes_of(const BenchmarkCase& what, int ranks);

struct BenchmarkOptions {
  int64_t samples = 20;                       // timed, each of one call or of a batch
  int64_t warmup = 5;                         // calls before them
  int64_t checks = 1;                         // calls with fresh data whose every element is looked at
  uint64_t seed = 0;                          // of the checks' data
  std::chrono::milliseconds timeout{30'000};  // of one call
  bool one_clock = true;                      // all ranks are on one host, so they share the steady clock
  int device = -1;                            // where the buffers are: CUDA's ordinal of this rank, or -1: host memory
};

struct BenchmarkResult {
  std::vector<double> seconds;  // of one call, per sample; equal on all ranks
  int64_t batch = 1;            // calls per sample
  uint64_t wrong = 0;           // elements, in all checks and on all ranks
  Execution execution;
};

// The values of all ranks in rank order. They do not go through the backend that is measured.
using Gather = std::function<std::vector<std::string>(std::string_view)>;

// All ranks make it with the same arguments and measure the same cases in the same
// order. One thread. Throws what the backend throws.
class Benchmark {
 public:
  // `largest`: the most bytes that a case will have. The backend outlives the benchmark.
  Benchmark(CommBackend& backend, Gather gather, const BenchmarkOptions& options, std::size_t largest);

  BenchmarkResult measure(const BenchmarkCase& what);

 private:
  struct Buffers {
    std::shared_ptr<void> send, recv;
  };

  std::shared_ptr<void> allocate(Source source);
  Collective prepare(const BenchmarkCase& what);
  ExecutionInfo run(Kind kind, const Collective& call);
  uint64_t check(Kind kind, const Collective& call);
  int64_t batch_of(Kind kind, const Collective& call);
  std::vector<double> time(Kind kind, const Collective& call, int64_t batch, Execution& execution);

  CommBackend& backend_;
  Gather gather_;
  BenchmarkOptions options_;
  std::size_t largest_;
  tools::BufferMemory memory_;
  std::shared_ptr<void> staging_;   // of `largest_` bytes, for the host; null: it reads and writes the buffers
  std::array<Buffers, 2> buffers_;  // by Source
};

}  // namespace ddprun::comm
