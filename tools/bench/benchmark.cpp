#include "tools/bench/benchmark.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "ddprun/plugin/detail/mix.hpp"

namespace ddprun::comm {
namespace {

// The same for all processes of a host (CLOCK_MONOTONIC).
using Clock = std::chrono::steady_clock;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

// Nanoseconds that one reading of the clock takes: the least of a few runs.
double clock_cost() {
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

constexpr double kClockShare = 0.01;  // of a sample, at most
constexpr int64_t kCallsOnGpu = 20;   // of a sample, as nccl-tests has it

std::string_view as_bytes(const std::vector<int64_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)};
}

std::size_t index_of(Source source) {
  return static_cast<std::size_t>(source);
}

uint64_t wrong_elements(const Pattern& pattern, Kind kind, const Collective& call, const void* result, int rank) {
  const auto mine = static_cast<std::size_t>(rank) * call.count;
  const std::size_t block = call.count * size_of(call.dtype);
  uint64_t wrong = 0;
  switch (kind) {
    case Kind::allreduce: return wrong_reductions(pattern, 0, call.count, result);
    case Kind::reduce_scatter: return wrong_reductions(pattern, mine, call.count, result);
    case Kind::broadcast: return wrong_copies(pattern, call.root, 0, call.count, result);
    case Kind::allgather:
      for (int peer = 0; peer < pattern.ranks; ++peer) {
        const auto* from = static_cast<const char*>(result) + static_cast<std::size_t>(peer) * block;
        wrong += wrong_copies(pattern, peer, 0, call.count, from);
      }
      return wrong;
    default: break;
  }
  return 0;
}

}  // namespace

std::size_t count_of(const BenchmarkCase& what, int ranks) {
  const std::size_t elements = what.bytes / size_of(what.dtype);
  return splits_in_blocks(what.kind) ? elements / static_cast<std::size_t>(ranks) : elements;
}

std::size_t bytes_of(const BenchmarkCase& what, int ranks) {
  const std::size_t blocks = splits_in_blocks(what.kind) ? static_cast<std::size_t>(ranks) : 1;
  return count_of(what, ranks) * blocks * size_of(what.dtype);
}

Benchmark::Benchmark(CommBackend& backend, Gather gather, const BenchmarkOptions& options, std::size_t largest)
    : backend_(backend), gather_(std::move(gather)), options_(options), largest_(largest), memory_(options.device) {
  if (memory_.kind() == Memory::cuda) staging_ = allocate_pages(largest_);
}

// Cleared, so that the kernel provides every page before the clock runs.
std::shared_ptr<void> Benchmark::allocate(Source source) {
  auto memory = source == Source::backend ? backend_.allocate(largest_) : memory_.allocate(largest_);
  memory_.clear(memory.get(), largest_);
  return memory;
}

Collective Benchmark::prepare(const BenchmarkCase& what) {
  Buffers& buffers = buffers_.at(index_of(what.source));
  if (buffers.recv == nullptr) buffers = {allocate(what.source), allocate(what.source)};
  Collective call = memory_.call(what.in_place ? buffers.recv.get() : buffers.send.get(), buffers.recv.get(),
                                 count_of(what, backend_.size()), what.dtype, what.op);
  call.root = what.root;
  if (what.in_place && splits_in_blocks(what.kind)) {
    char* const mine =
        static_cast<char*>(call.recv) + static_cast<std::size_t>(backend_.rank()) * call.count * size_of(call.dtype);
    (what.kind == Kind::allgather ? call.send = mine : call.recv = mine);
  }
  return call;
}

ExecutionInfo Benchmark::run(Kind kind, const Collective& call) {
  return start(backend_, kind, call).wait(options_.timeout);
}

BenchmarkResult Benchmark::measure(const BenchmarkCase& what) {
  const Collective call = prepare(what);
  BenchmarkResult result;
  result.wrong = check(what.kind, call);
  // Reduced in place again and again, any other numbers would grow beyond their format.
  if (what.in_place && what.kind != Kind::allgather) {
    memory_.clear(buffers_.at(index_of(what.source)).recv.get(), largest_);
  }
  result.batch = batch_of(what.kind, call);
  result.seconds = time(what.kind, call, result.batch, result.execution);
  // A call on a stream does not report how it ended. The barrier does.
  if (memory_.kind() == Memory::cuda) backend_.barrier().wait(options_.timeout);
  return result;
}

uint64_t Benchmark::check(Kind kind, const Collective& call) {
  const int rank = backend_.rank();
  const auto ranks = static_cast<std::size_t>(backend_.size());
  const std::size_t received = kind == Kind::allgather ? call.count * ranks : call.count;
  const std::size_t sent = kind == Kind::reduce_scatter ? call.count * ranks : call.count;
  const std::size_t size = size_of(call.dtype);
  const bool sends = kind != Kind::broadcast || rank == call.root;
  void* const recv = call.recv;
  void* const send = kind == Kind::broadcast ? recv : const_cast<void*>(call.send);
  const auto host_of = [&](void* memory) { return staging_ ? staging_.get() : memory; };
  const auto write = [&](void* memory, const Pattern& pattern, int from, std::size_t count) {
    fill(pattern, from, 0, count, host_of(memory));
    memory_.put(memory, host_of(memory), count * size);
  };
  uint64_t wrong = 0;
  for (int64_t i = 0; i < options_.checks; ++i) {
    const Pattern pattern{call.dtype, call.op, backend_.size(), mix(options_.seed) + static_cast<uint64_t>(i)};
    constexpr int kNoRank = -1;  // no rank sends this data: an element that still has it afterwards is wrong
    write(recv, pattern, kNoRank, received);
    if (sends) write(send, pattern, rank, sent);
    run(kind, call);
    memory_.get(host_of(recv), recv, received * size);
    wrong += wrong_elements(pattern, kind, call, host_of(recv), rank);
  }
  uint64_t total = 0;
  for (const std::string& count : gather_(std::to_string(wrong))) total += std::stoull(count);
  return total;
}

// On a GPU: a fixed number of calls, queued one after another as in a training step. On a CPU: enough calls that the
// time for reading the clock does not count, by the fastest of a few calls. All ranks use the largest of their numbers.
int64_t Benchmark::batch_of(Kind kind, const Collective& call) {
  if (memory_.kind() == Memory::cuda) return kCallsOnGpu;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t i = 0; i < std::max<int64_t>(options_.warmup, 1); ++i) {
    const int64_t begin = now();
    run(kind, call);
    least = std::min(least, now() - begin);
  }
  const double calls = std::ceil(clock_cost() / kClockShare / static_cast<double>(std::max<int64_t>(least, 1)));
  int64_t batch = 1;
  for (const std::string& number : gather_(std::to_string(static_cast<int64_t>(calls)))) {
    batch = std::max<int64_t>(batch, std::stoll(number));
  }
  return batch;
}

// The calls follow each other without a pause. A call (or batch) ends when its last rank ends it, and a sample is the
// time between two such ends. So the samples of a case add up to the time of its slowest rank. The clocks of hosts
// differ. Therefore, with several hosts, each rank counts from its own first time stamp.
std::vector<double> Benchmark::time(Kind kind, const Collective& call, int64_t batch, Execution& execution) {
  const auto samples = static_cast<std::size_t>(options_.samples);
  std::vector<int64_t> stamps(samples + 1);
  backend_.barrier().wait(options_.timeout);
  for (int64_t i = 0; i < options_.warmup; ++i) run(kind, call);
  memory_.finish();
  stamps[0] = now();
  ExecutionInfo info;
  for (std::size_t sample = 0; sample < samples; ++sample) {
    for (int64_t i = 0; i < batch; ++i) info = run(kind, call);
    memory_.finish();
    stamps[sample + 1] = now();
  }
  execution = info;
  const int64_t begin = options_.one_clock ? 0 : stamps[0];
  for (int64_t& stamp : stamps) stamp -= begin;

  std::vector<int64_t> last(stamps.size(), 0), peer(stamps.size());
  for (const std::string& bytes : gather_(as_bytes(stamps))) {
    if (bytes.size() != stamps.size() * sizeof(int64_t)) throw std::logic_error("the ranks measure different cases");
    std::memcpy(peer.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < last.size(); ++i) last[i] = std::max(last[i], peer[i]);
  }
  std::vector<double> seconds(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    seconds[i] = static_cast<double>(last[i + 1] - last[i]) * 1e-9 / static_cast<double>(batch);
  }
  return seconds;
}

}  // namespace ddprun::comm
