// Plugins, cores, memory, NUMA nodes, GPUs, the launcher.
#include "tools/doctor/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "cli/console/units.hpp"

namespace ddprun::doctor {
namespace {

using console::human_bytes;

constexpr int64_t kLittleMemory = int64_t{1} << 30;

std::vector<Finding> judge_versions(const Facts& facts) {
  Findings findings("versions");
  for (const auto& [name, version] : facts.versions) findings.ok(name, version);
  return std::move(findings).list();
}

void append(std::vector<Finding>& all, std::vector<Finding> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

}  // namespace

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::vector<Finding> judge(const Facts& facts) {
  std::vector<Finding> all = judge_versions(facts);
  append(all, judge_plugins(facts.plugins, facts.plugin_folders));
  append(all, judge_cores(facts.cores));
  append(all, judge_memory(facts.memory));
  append(all, judge_numa(facts.numa));
  append(all, judge_gpus(facts.gpus));
  append(all, judge_network(facts.network));
  append(all, judge_limits(facts.limits, !facts.network.rdma_devices.empty()));
  append(all, judge_variables(facts.variables, facts.network, facts.cores));
  append(all, judge_launcher(facts.launcher));
  return all;
}

std::vector<Finding> judge_plugins(const std::vector<Plugin>& plugins, const std::vector<std::string>& folders) {
  Findings findings("plugins");
  if (plugins.empty()) {
    findings.add(State::warning, "plugins", "none in " + joined(folders),
                 "install or build the plugins, or name their folder: --plugin-path DIR or DDPRUN_PLUGIN_PATH");
  }
  std::map<std::string, std::string> first;
  for (const Plugin& plugin : plugins) {
    const std::string name = plugin.kind + " " + plugin.name;
    const auto [other, is_first] = first.emplace(name, plugin.path);
    std::string about = plugin.version;
    if (!plugin.library.empty()) about += " (" + plugin.library + ")";
    if (!plugin.error.empty()) {
      findings.add(State::error, name, plugin.error,
                   "correct what the message names, build the plugin again with this ddprun's headers, or remove " +
                       plugin.path);
    } else if (!is_first) {
      findings.add(State::note, name, about + ", " + plugin.path,
                   "it is not used by name, because " + other->second + " comes first; name it by its path");
    } else {
      findings.ok(name, about + ", " + plugin.path);
    }
  }
  return std::move(findings).list();
}

std::vector<Finding> judge_cores(const Cores& cores) {
  Findings findings("cores");
  const std::string value = fmt::format("{} of {}", cores.usable, cores.online);
  if (cores.usable <= 0) {
    findings.add(State::note, "usable", "/proc does not report them", "set launch.threads to the cores of each rank");
  } else if (cores.usable < cores.online) {
    findings.add(State::note, "usable", value + ": CPUs " + cores.usable_list,
                 "the affinity mask excludes the others: ask the launcher for more cores (srun --cpus-per-task, mpirun "
                 "--bind-to none, docker --cpuset-cpus) if the ranks of this host need them");
  } else {
    findings.ok("usable", value);
  }
  if (cores.cpu_time && cores.usable > 0 && *cores.cpu_time < static_cast<double>(cores.usable)) {
    const auto whole = std::max<int64_t>(1, static_cast<int64_t>(std::floor(*cores.cpu_time)));
    findings.add(State::warning, "CPU time", fmt::format("{:.4g} CPUs, by the cgroup's limit", *cores.cpu_time),
                 fmt::format("threads beyond the limit are stopped for parts of each second: keep ranks x "
                             "launch.threads at {} or less, or raise the limit (docker --cpus, resources.limits.cpu)",
                             whole));
  } else {
    findings.ok("CPU time", cores.cpu_time ? fmt::format("{:.4g} CPUs", *cores.cpu_time) : "no limit");
  }
  if (cores.threads_per_core > 1) {
    findings.add(State::note, "SMT", fmt::format("{} threads per core", cores.threads_per_core),
                 "two threads of a core share its arithmetic units: keep ranks x launch.threads at " +
                     std::to_string(std::max<int64_t>(1, cores.usable / cores.threads_per_core)) +
                     " or less, and measure more");
  } else {
    findings.ok("SMT", "off");
  }
  return std::move(findings).list();
}

std::vector<Finding> judge_memory(const Memory& memory) {
  Findings findings("memory");
  const std::string of = memory.total ? " of " + human_bytes(*memory.total) : "";
  if (!memory.available) {
    findings.add(State::note, "available", "/proc/meminfo does not report it", "find out with free -h");
  } else if (*memory.available < kLittleMemory) {
    findings.add(State::warning, "available", human_bytes(*memory.available) + of,
                 "each rank needs some hundred MiB for LibTorch alone: end other programs, or start fewer ranks");
  } else {
    findings.ok("available", human_bytes(*memory.available) + of);
  }
  if (!memory.group_limit || (memory.total && *memory.group_limit >= *memory.total)) {
    findings.ok("cgroup limit", "none");
    return std::move(findings).list();
  }
  const int64_t left = *memory.group_limit - std::min(memory.group_in_use.value_or(0), *memory.group_limit);
  const bool little = left < kLittleMemory;
  findings.add(little ? State::warning : State::note, "cgroup limit",
               human_bytes(*memory.group_limit) + ", " + human_bytes(left) + " left",
               "the kernel kills a rank when all ranks of this host together need more: raise the limit (docker "
               "--memory, srun --mem, resources.limits.memory) if a run ends with SIGKILL");
  return std::move(findings).list();
}

std::vector<Finding> judge_numa(const std::vector<NumaNode>& nodes) {
  Findings findings("NUMA");
  const auto usable = std::count_if(nodes.begin(), nodes.end(), [](const NumaNode& node) { return node.usable; });
  for (const NumaNode& node : nodes) {
    const std::string name = "node " + std::to_string(node.number);
    std::string value = node.cpus.empty() ? "no CPUs" : "CPUs " + node.cpus;
    if (node.memory) value += ", " + human_bytes(*node.memory);
    if (node.usable && usable > 1) {
      findings.add(State::note, name, value,
                   "bind each rank to one node, because memory of another node is slower: srun --cpu-bind=ldoms, "
                   "mpirun --map-by numa --bind-to numa, numactl --cpunodebind=N --membind=N");
    } else {
      findings.ok(name, value + (node.usable ? "" : ", not in the affinity mask"));
    }
  }
  if (nodes.empty()) findings.ok("nodes", "the kernel reports none");
  return std::move(findings).list();
}

std::vector<Finding> judge_gpus(const Gpus& gpus) {
  Findings findings("GPUs");
  if (gpus.hidden) {
    findings.add(State::note, "driver", "CUDA_VISIBLE_DEVICES hides all GPUs", "unset it to examine and use them");
    return std::move(findings).list();
  }
  if (!gpus.driver && gpus.list.empty()) {
    findings.add(State::note, "driver", "no NVIDIA driver, no GPU",
                 "training on the CPU works without one; launch.device = \"cuda\" needs a GPU and its driver");
    return std::move(findings).list();
  }
  const std::string version = gpus.driver_version.empty() ? "NVIDIA" : "NVIDIA " + gpus.driver_version;
  if (!gpus.error.empty()) {
    findings.add(State::error, "driver", version + ": " + gpus.error,
                 "check with nvidia-smi; start a container with --gpus all; training on the CPU works without a GPU");
    return std::move(findings).list();
  }
  findings.ok("driver", version + ", for CUDA " + gpus.cuda);
  for (std::size_t i = 0; i < gpus.list.size(); ++i) {
    const Gpu& gpu = gpus.list[i];
    const std::string name = "GPU " + std::to_string(i);
    const std::string value = fmt::format("{}, {}, {}", gpu.name, human_bytes(gpu.memory), gpu.bus_id);
    if (!gpu.in_use) {
      findings.add(State::note, name, value + "; NVML does not report its load",
                   "install libnvidia-ml.so.1, which comes with the driver; in a container, set "
                   "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
    } else if (*gpu.in_use > gpu.memory / 10) {
      findings.add(State::warning, name, value + "; " + human_bytes(*gpu.in_use) + " in use",
                   "less memory is left for a rank: nvidia-smi shows which processes use it; end them, or name other GPUs in "
                   "launch.devices");
    } else {
      findings.ok(name, value);
    }
  }
  return std::move(findings).list();
}

std::vector<Finding> judge_launcher(const Launcher& launcher) {
  Findings findings("launcher");
  if (!launcher.error.empty()) {
    findings.add(State::error, "launcher", launcher.error,
                 "ddprun would end with this error: set or unset the variables that it names");
  } else {
    findings.ok("launcher", launcher.description.empty() ? "none: ddprun starts the ranks" : launcher.description);
  }
  return std::move(findings).list();
}

}  // namespace ddprun::doctor
