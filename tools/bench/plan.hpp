// bench: `ddprun bench`: plans the measurement, starts ranks that measure the variants in alternation, and reports the
// results. Torch-free.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/call.hpp"
#include "plugin/registry.hpp"
#include "tools/bench/benchmark.hpp"

namespace ddprun::bench {

// The command line as given, with numbers in their ranges; the short options are those of nccl-tests.
struct Request {
  uint64_t min_bytes = 4;         // -b
  uint64_t max_bytes = 64 << 20;  // -e
  uint64_t step_bytes = 0;        // -i; 0: use factor
  uint64_t factor = 4;            // -f
  std::vector<uint64_t> sizes;    // replaces the four above
  comm::BenchmarkOptions each;    // -n, -w, -c: of each round
  int64_t rounds = 5;
  int64_t root = 0;             // -r
  std::string dtype = "float";  // -d
  std::string op = "sum";       // -o
  std::vector<std::string> collectives{"allreduce"};
  std::vector<std::string> backends{"gloo"};
  std::vector<std::string> algorithms;  // empty: auto, or with tune all that the backend declares
  std::vector<int64_t> ranks{2};
  std::string device = "cpu";        // of the buffers; or "cuda"
  int64_t ranks_here = 0;            // how many of `ranks` are on this host; 0: all
  std::vector<int64_t> devices;      // CUDA ordinal for each rank of this host; empty: its i-th rank uses GPU i
  std::vector<std::string> options;  // [BACKEND.]KEY=VALUE
  double timeout = 30;               // seconds
  std::string json;                  // FILE
  std::optional<double> min_busbw;   // GB/s
  std::string tune;                  // FILE
};

// One way to run the same cases.
struct Variant {
  std::string backend;  // as requested: a name or a path
  plugin::CommPlugin plugin;
  std::string algorithm;
  int ranks = 2;
  std::map<std::string, std::string> options;

  // "gloo ring, 2 ranks"
  std::string text() const;
};

// A host and the ranks there.
struct HostRanks {
  std::string name;
  std::vector<int> ranks;
  std::string identity{};  // unlike names, different on different hosts
};

// A request that has been checked.
struct Plan {
  Request request;
  std::vector<comm::Kind> collectives;
  DType dtype = DType::float32;
  Op op = Op::sum;
  Memory memory = Memory::host;    // of the buffers
  std::vector<std::size_t> sizes;  // bytes, ascending
  std::vector<Variant> variants;
  std::vector<HostRanks> hosts;  // of a job, in the order of their first ranks; empty: all ranks are on this host
  comm::BenchmarkOptions benchmark;
};

// Checks the whole request, plugins included; starts nothing. Throws Error: usage (2) with the option and its valid
// values, or plugin (3) for a missing backend or GPU.
Plan plan_of(const Request& request, const plugin::Registry& registry);

// What each rank of a variant measures, in this order: every collective, size, buffer source of the backend, and place.
std::vector<comm::BenchmarkCase> cases_of(const Plan& plan, const Variant& variant);

// CUDA ordinal of the GPU of a host's i-th rank; -1 for buffers in host memory.
int device_of(const Plan& plan, int local_rank);

// What must be equal on all hosts, in words.
std::string to_text(const Plan& plan);

// "float", "half", ...: the name in nccl-tests if it has one.
std::string type_name(DType dtype);
std::string op_name(Op op);

}  // namespace ddprun::bench
