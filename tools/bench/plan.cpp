#include "tools/bench/plan.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <utility>

#include "cli/config/experiment.hpp"
#include "comm/plugin_backend.hpp"
#include "cuda/driver.hpp"
#include "ddprun/error.hpp"

namespace ddprun::bench {
namespace {

void require(bool holds, const std::string& option, const std::string& given, const std::string& expected) {
  if (!holds) refuse(option, given, expected);
}

void require_least(const std::string& option, int64_t value, int64_t least) {
  require(value >= least, option, std::to_string(value), "a number from " + std::to_string(least));
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

std::vector<std::size_t> listed_sizes(const Request& request) {
  std::vector<std::size_t> sizes;
  for (const std::string& size : request.sizes) sizes.push_back(parse_bytes("--sizes", size));
  const bool ascending = std::adjacent_find(sizes.begin(), sizes.end(), std::greater_equal<>()) == sizes.end();
  require(ascending, "--sizes", joined(request.sizes), "each size larger than the one before");
  return sizes;
}

// The last one is at most max_bytes.
std::vector<std::size_t> sizes_of(const Request& request) {
  if (!request.sizes.empty()) return listed_sizes(request);
  const std::size_t first = parse_bytes("-b", request.min_bytes), last = parse_bytes("-e", request.max_bytes);
  require(first <= last, "-e", request.max_bytes, "at least -b (" + request.min_bytes + ")");
  const std::size_t step = request.step_bytes.empty() ? 0 : parse_bytes("-i", request.step_bytes);
  if (step == 0) require_least("-f", request.factor, 2);
  std::vector<std::size_t> sizes;
  for (std::size_t size = first; size <= last;
       size = step > 0 ? size + step : size * static_cast<std::size_t>(request.factor)) {
    sizes.push_back(size);
  }
  return sizes;
}

template <class T>
void require_once(const std::string& option, const std::vector<T>& values, const std::string& given) {
  for (auto at = values.begin(); at != values.end(); ++at) {
    require(std::find(values.begin(), at, *at) == at, option, given, "each value once");
  }
}

void require_ranks(const Request& request) {
  std::vector<std::string> given;
  for (const int64_t ranks : request.ranks) given.push_back(std::to_string(ranks));
  require(!request.ranks.empty(), "--ranks", "", "numbers of ranks: 2,4");
  require_once("--ranks", request.ranks, joined(given));
  for (const int64_t ranks : request.ranks) {
    constexpr int64_t kMost = 1024;
    require(ranks >= 1 && ranks <= kMost, "--ranks", std::to_string(ranks), "numbers from 1 to 1024");
    require(request.root >= 0 && request.root < ranks, "-r", std::to_string(request.root),
            "a rank of every group of --ranks");
  }
}

// KEY=VALUE is for all backends, BACKEND.KEY=VALUE for one.
std::map<std::string, std::string> options_for(const std::string& backend, const Request& request) {
  std::map<std::string, std::string> options;
  for (const std::string& text : request.options) {
    const std::size_t equals = text.find('=');
    require(equals != std::string::npos && equals > 0, "--option", text, "KEY=VALUE or BACKEND.KEY=VALUE");
    std::string key = text.substr(0, equals);
    const std::size_t dot = key.rfind('.');
    if (dot != std::string::npos) {
      const std::string owner = key.substr(0, dot);
      require_known("--option", owner, request.backends);
      if (owner != backend) continue;
      key.erase(0, dot + 1);
    }
    options[key] = text.substr(equals + 1);
  }
  return options;
}

// The algorithms to measure with this backend.
std::vector<std::string> algorithms_for(const plugin::CommPlugin& plugin, const Request& request) {
  const Memory memory = request.device == "cuda" ? Memory::cuda : Memory::host;
  std::vector<std::string> algorithms = request.algorithms;
  if (algorithms.empty() && request.tune.empty()) algorithms = {"auto"};
  if (algorithms.empty()) {
    for (const auto& declared : comm::capabilities_of(*plugin.table).algorithms) {
      if (declared.takes(memory)) algorithms.push_back(declared.name);
    }
  }
  for (const std::string& algorithm : algorithms) {
    if (const auto fault = comm::algorithm_error(*plugin.table, algorithm, memory)) {
      throw Error(ExitCode::usage, "--algorithm " + algorithm + ": " + plugin.table->name + ": " + *fault);
    }
  }
  return algorithms;
}

void require_served(const Plan& plan, const Variant& variant) {
  const auto capabilities = comm::capabilities_of(*variant.plugin.table);
  const bool on_gpu = plan.memory == Memory::cuda;
  if (on_gpu ? !capabilities.cuda : !capabilities.host) {
    throw Error(ExitCode::plugin, variant.backend + (on_gpu ? " does not support CUDA memory: use --device cpu"
                                                            : " does not support host memory: use --device cuda"));
  }
  const uint32_t dtype = 1U << static_cast<uint32_t>(plan.dtype), op = 1U << static_cast<uint32_t>(plan.op);
  const bool taken =
      std::any_of(capabilities.algorithms.begin(), capabilities.algorithms.end(), [&](const AlgorithmInfo& algorithm) {
        const bool chosen = variant.algorithm == "auto" || algorithm.name == variant.algorithm;
        return chosen && (algorithm.dtypes & dtype) != 0 && (algorithm.ops & op) != 0;
      });
  if (taken) return;
  throw Error(ExitCode::usage, "-d " + type_name(plan.dtype) + " -o " + op_name(plan.op) + ": " + variant.backend +
                                   ", algorithm " + variant.algorithm + ", does not support them");
}

void require_tunable(const Request& request) {
  if (request.tune.empty()) return;
  require(request.backends.size() == 1, "--tune", joined(request.backends), "one backend");
  require(request.collectives == std::vector<std::string>{"allreduce"}, "--tune", joined(request.collectives),
          "allreduce only: other collectives have no algorithms");
  const auto& algorithms = request.algorithms;
  require(std::find(algorithms.begin(), algorithms.end(), "auto") == algorithms.end(), "--tune", "auto",
          "algorithms to choose from");
}

int64_t count_gpus() {
  try {
    return static_cast<int64_t>(cuda::gpus().size());
  } catch (const Error& error) {
    throw Error(error.code(), std::string("--device cuda: ") + error.what());
  }
}

// Where the buffers are. Checks that every rank of every group has a GPU there.
void choose_memory(const Request& request, Plan& plan) {
  require_known("--device", request.device, {"cpu", "cuda"});
  if (request.device == "cpu") {
    std::vector<std::string> given;
    for (const int64_t device : request.devices) given.push_back(std::to_string(device));
    require(given.empty(), "--devices", joined(given), "--device cuda as well");
    return;
  }
  plan.memory = Memory::cuda;
  plan.devices = request.devices;
  const int64_t count = count_gpus();
  const std::string found = "this machine has " + std::to_string(count) + (count == 1 ? " GPU" : " GPUs");
  for (const int64_t device : request.devices) {
    if (device < 0 || device >= count) {
      throw Error(ExitCode::plugin, "--devices: no GPU " + std::to_string(device) + ": " + found + ", counted from 0");
    }
  }
  const int64_t largest = *std::max_element(request.ranks.begin(), request.ranks.end());
  const int64_t most = request.ranks_here > 0 ? request.ranks_here : largest;
  const std::string what = request.ranks_here > 0 ? "ranks on this host: " : "--ranks ";
  const std::string advice =
      ": name the GPU of each rank in --devices; ranks can share a GPU if the backend allows it (nccl: --option "
      "share_gpu=true)";
  if (request.devices.empty() && most > count) {
    throw Error(ExitCode::plugin, what + std::to_string(most) + ": " + found + advice);
  }
  if (!request.devices.empty() && most > static_cast<int64_t>(request.devices.size())) {
    throw Error(ExitCode::usage, what + std::to_string(most) + ": --devices names fewer GPUs" + advice);
  }
}

comm::BenchmarkOptions benchmark_of(const Request& request) {
  require_least("-n", request.iterations, 1);
  require_least("-w", request.warmup, 0);
  require_least("-c", request.checks, 0);
  require_least("--rounds", request.rounds, 1);
  require(std::isfinite(request.timeout) && request.timeout >= 0.001, "--timeout", std::to_string(request.timeout),
          "seconds, from 0.001");
  comm::BenchmarkOptions options;
  options.samples = request.iterations;
  options.warmup = request.warmup;
  options.checks = request.checks;
  options.timeout = std::chrono::milliseconds(std::llround(request.timeout * 1000));
  return options;
}

}  // namespace

std::string Variant::text() const {
  return backend + " " + algorithm + ", " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

Plan plan_of(const Request& request, const plugin::Registry& registry) {
  Plan plan;
  plan.benchmark = benchmark_of(request);
  plan.rounds = request.rounds;
  plan.dtype = parse_dtype(request.dtype);
  plan.op = parse_op(request.op);
  plan.sizes = sizes_of(request);
  plan.root = static_cast<int>(request.root);
  plan.ranks_here = request.ranks_here;
  require_once("--collective", request.collectives, joined(request.collectives));
  for (const std::string& name : request.collectives) plan.collectives.push_back(parse_collective(name));
  require_once("--backend", request.backends, joined(request.backends));
  require_once("--algorithm", request.algorithms, joined(request.algorithms));
  require_ranks(request);
  choose_memory(request, plan);
  require_tunable(request);
  for (const int64_t ranks : request.ranks) {
    for (const std::string& backend : request.backends) {
      const plugin::CommPlugin plugin = registry.comm(backend);
      for (const std::string& algorithm : algorithms_for(plugin, request)) {
        plan.variants.push_back({backend, plugin, algorithm, static_cast<int>(ranks), options_for(backend, request)});
        require_served(plan, plan.variants.back());
      }
    }
  }
  return plan;
}

int device_of(const Plan& plan, int local_rank) {
  if (plan.memory == Memory::host) return -1;
  return plan.devices.empty() ? local_rank : static_cast<int>(plan.devices.at(static_cast<std::size_t>(local_rank)));
}

std::string words_of(const Plan& plan) {
  std::string words = "-d " + type_name(plan.dtype) + " -o " + op_name(plan.op) + " -r " + std::to_string(plan.root) +
                      " --rounds " + std::to_string(plan.rounds) + " -n " + std::to_string(plan.benchmark.samples) +
                      " -w " + std::to_string(plan.benchmark.warmup) + " -c " + std::to_string(plan.benchmark.checks) +
                      " --device " + (plan.memory == Memory::cuda ? "cuda" : "cpu") + " --sizes ";
  for (const std::size_t size : plan.sizes) words += std::to_string(size) + ",";
  words += " --collective ";
  for (const comm::Kind kind : plan.collectives) words += std::string(name_of(kind)) + ",";
  for (const Variant& variant : plan.variants) {
    words +=
        std::string("; ") + variant.plugin.table->name + " " + variant.plugin.table->version + " " + variant.algorithm;
    for (const auto& [key, value] : config::shared_options(variant.options)) words += " --option " + key + "=" + value;
  }
  return words;
}

std::vector<comm::BenchmarkCase> cases_of(const Plan& plan, const Variant& variant) {
  std::vector<comm::Source> sources{comm::Source::malloc};
  const auto capabilities = comm::capabilities_of(*variant.plugin.table);
  if (capabilities.alloc && capabilities.alloc_memory == plan.memory) {
    sources.insert(sources.begin(), comm::Source::backend);
  }
  // Whether an allreduce refuses memory from malloc.
  const bool needs_alloc = std::any_of(
      capabilities.algorithms.begin(), capabilities.algorithms.end(),
      [&](const AlgorithmInfo& declared) { return declared.name == variant.algorithm && declared.from_alloc; });
  std::vector<comm::BenchmarkCase> cases;
  for (const comm::Kind kind : plan.collectives) {
    for (const std::size_t bytes : plan.sizes) {
      for (const comm::Source source : sources) {
        if (needs_alloc && kind == comm::Kind::allreduce && source == comm::Source::malloc) continue;
        const bool one_buffer = kind == comm::Kind::broadcast;
        if (!one_buffer) cases.push_back({kind, plan.dtype, plan.op, plan.root, bytes, false, source});
        cases.push_back({kind, plan.dtype, plan.op, plan.root, bytes, true, source});
      }
    }
  }
  return cases;
}

}  // namespace ddprun::bench
