#include "tools/bench/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <ranges>
#include <utility>

#include "cli/config/experiment.hpp"
#include "cli/console/table.hpp"
#include "comm/plugin_backend.hpp"
#include "cuda/driver.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/words.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::bench {
namespace {

// The names of nccl-tests, and PyTorch's where they differ.
const std::map<std::string, DType> kDTypes = {
    {"int8", DType::int8},       {"uint8", DType::uint8},     {"int16", DType::int16},
    {"int32", DType::int32},     {"int64", DType::int64},     {"half", DType::float16},
    {"float16", DType::float16}, {"float", DType::float32},   {"float32", DType::float32},
    {"double", DType::float64},  {"float64", DType::float64}, {"bfloat16", DType::bfloat16}};
const std::map<std::string, Op> kOps = {{"sum", Op::sum}, {"prod", Op::product}, {"product", Op::product},
                                        {"min", Op::min}, {"max", Op::max},      {"avg", Op::avg}};
const std::map<std::string, comm::Kind> kKinds = {{"allreduce", comm::Kind::allreduce},
                                                  {"broadcast", comm::Kind::broadcast},
                                                  {"allgather", comm::Kind::allgather},
                                                  {"reduce_scatter", comm::Kind::reduce_scatter}};

void require(bool holds, const std::string& option, const std::string& given, const std::string& expected) {
  if (!holds) throw Error(ExitCode::usage, option + " " + given + ": " + expected);
}

void require_known(const std::string& option, const std::string& given, const std::vector<std::string>& known) {
  require(std::find(known.begin(), known.end(), given) != known.end(), option, given, expected_one_of(given, known));
}

template <class Value>
Value named(const std::string& option, const std::string& name, const std::map<std::string, Value>& values) {
  require_known(option, name, tools::each(std::views::keys(values)));
  return values.at(name);
}

template <class List>
std::string joined(const List& list) {
  return fmt::format("{}", fmt::join(list, ","));
}

// The last one is at most max_bytes.
std::vector<std::size_t> sizes_of(const Request& request) {
  std::vector<std::size_t> sizes(request.sizes.begin(), request.sizes.end());
  const bool ascending = std::adjacent_find(sizes.begin(), sizes.end(), std::greater_equal<>()) == sizes.end();
  require(ascending, "--sizes", joined(sizes), "expected each size larger than the one before");
  if (!sizes.empty()) return sizes;
  const uint64_t first = request.min_bytes, last = request.max_bytes, step = request.step_bytes;
  require(first <= last, "-e", std::to_string(last), fmt::format("expected at least -b ({})", first));
  for (uint64_t size = first; size <= last; size = step > 0 ? size + step : size * request.factor) {
    sizes.push_back(size);
  }
  return sizes;
}

template <class T>
void require_once(const std::string& option, const std::vector<T>& values) {
  for (auto at = values.begin(); at != values.end(); ++at) {
    require(std::find(values.begin(), at, *at) == at, option, joined(values), "expected each value once");
  }
}

// KEY=VALUE is for all backends, BACKEND.KEY=VALUE for one.
std::map<std::string, std::string> options_for(const std::string& backend, const Request& request) {
  std::map<std::string, std::string> options;
  if (backend.starts_with("c10d:")) options["backend"] = backend.substr(5);
  for (const std::string& text : request.options) {
    const std::size_t equals = text.find('=');
    require(equals != std::string::npos && equals > 0, "--option", text, "expected KEY=VALUE or BACKEND.KEY=VALUE");
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
  const bool taken = std::ranges::any_of(capabilities.algorithms, [&](const AlgorithmInfo& algorithm) {
    const bool chosen = variant.algorithm == "auto" || algorithm.name == variant.algorithm;
    return chosen && (algorithm.dtypes & dtype) != 0 && (algorithm.ops & op) != 0;
  });
  if (taken) return;
  throw Error(ExitCode::usage, "-d " + type_name(plan.dtype) + " -o " + op_name(plan.op) + ": " + variant.backend +
                                   ", algorithm " + variant.algorithm + ", does not support them");
}

void require_tunable(const Request& request) {
  if (request.tune.empty()) return;
  require(request.backends.size() == 1, "--tune", joined(request.backends), "expected one backend");
  require(request.collectives == std::vector<std::string>{"allreduce"}, "--tune", joined(request.collectives),
          "expected allreduce only: other collectives have no algorithms");
  require(std::ranges::count(request.algorithms, "auto") == 0, "--tune", "auto", "expected algorithms to choose from");
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
    return require(request.devices.empty(), "--devices", joined(request.devices), "expected --device cuda as well");
  }
  plan.memory = Memory::cuda;
  const auto& devices = request.devices;
  const int64_t most = request.ranks_here > 0 ? request.ranks_here : std::ranges::max(request.ranks);
  require(devices.empty() || most <= static_cast<int64_t>(devices.size()), "--devices", joined(devices),
          fmt::format("expected a GPU for each of {} ranks", most));
  const int64_t count = count_gpus();
  const int64_t last = devices.empty() ? most - 1 : std::ranges::max(devices);
  if (last < count && std::ranges::none_of(devices, [](int64_t device) { return device < 0; })) return;
  throw Error(
      ExitCode::plugin,
      fmt::format("--device cuda: the {} ranks of this host need GPUs up to {}, counted from 0, and this machine "
                  "has {}: name the GPU of each rank in --devices; ranks can share a GPU if the backend allows "
                  "it (nccl: --option share_gpu=true)",
                  most, last, count));
}

}  // namespace

std::string type_name(DType dtype) {
  switch (dtype) {
    case DType::float16: return "half";
    case DType::float32: return "float";
    case DType::float64: return "double";
    default: return name_of(dtype);
  }
}

std::string op_name(Op op) {
  return op == Op::product ? "prod" : name_of(op);
}

std::string Variant::text() const {
  return backend + " " + algorithm + ", " + console::several(ranks, "rank");
}

Plan plan_of(const Request& request, const plugin::Registry& registry) {
  Plan plan;
  plan.request = request;
  plan.benchmark = request.each;
  plan.benchmark.timeout = config::milliseconds(request.timeout);
  plan.dtype = named("-d", request.dtype, kDTypes);
  plan.op = named("-o", request.op, kOps);
  plan.sizes = sizes_of(request);
  plan.collectives =
      tools::each(request.collectives, [](const std::string& name) { return named("--collective", name, kKinds); });
  require_once("--collective", request.collectives);
  require_once("--backend", request.backends);
  require_once("--algorithm", request.algorithms);
  require_once("--ranks", request.ranks);
  for (const int64_t ranks : request.ranks) {
    require(request.root < ranks, "-r", std::to_string(request.root), "expected a rank of every group of --ranks");
  }
  choose_memory(request, plan);
  require_tunable(request);
  for (const int64_t ranks : request.ranks) {
    for (const std::string& backend : request.backends) {
      const plugin::CommPlugin plugin = registry.comm(backend.starts_with("c10d:") ? "c10d" : backend);
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
  return plan.request.devices.empty() ? local_rank
                                      : static_cast<int>(plan.request.devices.at(static_cast<std::size_t>(local_rank)));
}

std::string to_text(const Plan& plan) {
  std::string words = "-d " + type_name(plan.dtype) + " -o " + op_name(plan.op) + " -r " +
                      std::to_string(plan.request.root) + " --rounds " + std::to_string(plan.request.rounds) + " -n " +
                      std::to_string(plan.benchmark.samples) + " -w " + std::to_string(plan.benchmark.warmup) + " -c " +
                      std::to_string(plan.benchmark.checks) + " --device " + plan.request.device + " --sizes ";
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
  const bool needs_alloc = std::ranges::any_of(capabilities.algorithms, [&](const AlgorithmInfo& declared) {
    return declared.name == variant.algorithm && declared.from_alloc;
  });
  const int root = static_cast<int>(plan.request.root);
  std::vector<comm::BenchmarkCase> cases;
  for (const comm::Kind kind : plan.collectives) {
    for (const std::size_t bytes : plan.sizes) {
      for (const comm::Source source : sources) {
        if (needs_alloc && kind == comm::Kind::allreduce && source == comm::Source::malloc) continue;
        const bool one_buffer = kind == comm::Kind::broadcast;
        if (!one_buffer) cases.push_back({kind, plan.dtype, plan.op, root, bytes, false, source});
        cases.push_back({kind, plan.dtype, plan.op, root, bytes, true, source});
      }
    }
  }
  return cases;
}

}  // namespace ddprun::bench
