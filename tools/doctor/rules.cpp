// All rules except those about the network.
#include "tools/doctor/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/console/units.hpp"

namespace ddprun::doctor {
namespace {

using console::human_bytes;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = 1024 * kMiB;
constexpr int64_t kLittleSpace = 64 * kMiB;
constexpr uint64_t kFewFiles = 256;       // not enough for a launcher with some ranks
constexpr uint64_t kUsualFiles = 1024;    // many distributions' default
constexpr uint64_t kFewProcesses = 1024;  // a rank has tens of threads, and each counts

int64_t clamped(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
}

std::string text_of(const Limit& limit, std::string (*human)(int64_t)) {
  return limit ? human(clamped(*limit)) : "unlimited";
}

bool below(const Limit& limit, uint64_t least) {
  return limit && *limit < least;
}

}  // namespace

const char* name_of(State state) {
  switch (state) {
    case State::ok: return "ok";
    case State::note: return "note";
    case State::warning: return "warning";
    case State::error: break;
  }
  return "error";
}

void Findings::judge(const std::string& name, const std::string& value, const std::vector<Rule>& rules) {
  for (const Rule& rule : rules) {
    if (!rule.applies) continue;
    list_.push_back({group_, name, rule.state, rule.value.empty() ? value : rule.value, rule.advice});
    return;
  }
  list_.push_back({group_, name, State::ok, value, ""});
}

void Findings::judge_only(const std::string& name, const Rule& rule) {
  if (rule.applies) judge(name, "", {rule});
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::vector<Finding> judge(const Facts& facts) {
  Findings versions("versions");
  for (const auto& [name, version] : facts.versions) versions.judge(name, version);
  std::vector<Finding> all;
  for (const std::vector<Finding>& group :
       {versions.list(), judge_plugins(facts.plugins, facts.plugin_folders), judge_cores(facts.cores),
        judge_memory(facts.memory), judge_numa(facts.numa), judge_gpus(facts.gpus), judge_network(facts.network),
        judge_limits(facts.limits, !facts.network.rdma_devices.empty()),
        judge_variables(facts.variables, facts.network, facts.cores), judge_launcher(facts.launcher)}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

std::vector<Finding> judge_plugins(const std::vector<Plugin>& plugins, const std::vector<std::string>& folders) {
  Findings findings("plugins");
  findings.judge_only("plugins",
                      {plugins.empty(), State::warning,
                       "install or build the plugins, or name their folder: --plugin-path DIR or DDPRUN_PLUGIN_PATH",
                       "none in " + joined(folders)});
  std::map<std::string, std::string> first;
  for (const Plugin& plugin : plugins) {
    const std::string name = plugin.kind + " " + plugin.name;
    const auto [other, is_first] = first.emplace(name, plugin.path);
    const std::string library = plugin.library.empty() ? "" : " (" + plugin.library + ")";
    findings.judge(
        name, plugin.version + library + ", " + plugin.path,
        {{!plugin.error.empty(), State::error,
          "correct what the message names, build the plugin again with this ddprun's headers, or remove " + plugin.path,
          plugin.error},
         {!is_first, State::note,
          "it is not used by name, because " + other->second + " comes first; name it by its path"}});
  }
  return findings.list();
}

std::vector<Finding> judge_cores(const Cores& cores) {
  Findings findings("cores");
  const std::string value = fmt::format("{} of {}", cores.usable, cores.online);
  findings.judge(
      "usable", value,
      {{cores.usable <= 0, State::note, "set launch.threads to the cores of each rank", "/proc does not report them"},
       {cores.usable < cores.online, State::note,
        "the affinity mask excludes the others: ask the launcher for more cores (srun --cpus-per-task, mpirun "
        "--bind-to none, docker --cpuset-cpus) if the ranks of this host need them",
        value + ": CPUs " + cores.usable_list}});
  const double time = cores.cpu_time.value_or(0);
  const std::string cpus = fmt::format("{:.4g} CPUs", time);
  findings.judge("CPU time", cores.cpu_time ? cpus : "no limit",
                 {{cores.cpu_time && cores.usable > 0 && time < static_cast<double>(cores.usable), State::warning,
                   fmt::format("threads beyond the limit are stopped for parts of each second: keep ranks x "
                               "launch.threads at {:.0f} or less, or raise the limit (docker --cpus, "
                               "resources.limits.cpu)",
                               std::max(1.0, std::floor(time))),
                   cpus + ", by the cgroup's limit"}});
  findings.judge(
      "SMT", "off",
      {{cores.threads_per_core > 1, State::note,
        fmt::format("two threads of a core share its arithmetic units: keep ranks x launch.threads at {} or less, and "
                    "measure more",
                    std::max<int64_t>(1, cores.usable / cores.threads_per_core)),
        fmt::format("{} threads per core", cores.threads_per_core)}});
  return findings.list();
}

std::vector<Finding> judge_memory(const Memory& memory) {
  Findings findings("memory");
  const std::string of = memory.total ? " of " + human_bytes(*memory.total) : "";
  findings.judge("available", human_bytes(memory.available.value_or(0)) + of,
                 {{!memory.available, State::note, "find out with free -h", "/proc/meminfo does not report it"},
                  {memory.available < kGiB, State::warning,
                   "each rank needs some hundred MiB for LibTorch alone: end other programs, or start fewer ranks"}});
  const int64_t limit = memory.group_limit.value_or(INT64_MAX);
  const int64_t left = limit - std::min(memory.group_in_use.value_or(0), limit);
  findings.judge("cgroup limit", "none",
                 {{limit < memory.total.value_or(INT64_MAX), left < kGiB ? State::warning : State::note,
                   "the kernel kills a rank when all ranks of this host together need more: raise the limit (docker "
                   "--memory, srun "
                   "--mem, resources.limits.memory) if a run ends with SIGKILL",
                   human_bytes(limit) + ", " + human_bytes(left) + " left"}});
  return findings.list();
}

std::vector<Finding> judge_numa(const std::vector<NumaNode>& nodes) {
  Findings findings("NUMA");
  const auto usable = std::count_if(nodes.begin(), nodes.end(), [](const NumaNode& node) { return node.usable; });
  for (const NumaNode& node : nodes) {
    const std::string memory = node.memory ? ", " + human_bytes(*node.memory) : "";
    findings.judge("node " + std::to_string(node.number),
                   (node.cpus.empty() ? "no CPUs" : "CPUs " + node.cpus) + memory +
                       (node.usable ? "" : ", not in the affinity mask"),
                   {{node.usable && usable > 1, State::note,
                     "bind each rank to one node, because memory of another node is slower: srun --cpu-bind=ldoms, "
                     "mpirun --map-by numa --bind-to numa, numactl --cpunodebind=N --membind=N"}});
  }
  if (nodes.empty()) findings.judge("nodes", "the kernel reports none");
  return findings.list();
}

std::vector<Finding> judge_gpus(const Gpus& gpus) {
  Findings findings("GPUs");
  const std::string version = gpus.driver_version.empty() ? "NVIDIA" : "NVIDIA " + gpus.driver_version;
  findings.judge("driver", version + ", for CUDA " + gpus.cuda,
                 {{gpus.hidden, State::note, "unset it to examine and use them", "CUDA_VISIBLE_DEVICES hides all GPUs"},
                  {!gpus.driver && gpus.list.empty(), State::note,
                   "training on the CPU works without one; launch.device = \"cuda\" needs a GPU and its driver",
                   "no NVIDIA driver, no GPU"},
                  {!gpus.error.empty(), State::error,
                   "check with nvidia-smi; start a container with --gpus all; training on the CPU works without a GPU",
                   version + ": " + gpus.error}});
  if (findings.list().back().state != State::ok) return findings.list();
  for (std::size_t i = 0; i < gpus.list.size(); ++i) {
    const Gpu& gpu = gpus.list[i];
    const std::string value = fmt::format("{}, {}, {}", gpu.name, human_bytes(gpu.memory), gpu.bus_id);
    findings.judge("GPU " + std::to_string(i), value,
                   {{!gpu.in_use, State::note,
                     "install libnvidia-ml.so.1, which comes with the driver; in a container, set "
                     "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                     value + "; NVML does not report its load"},
                    {gpu.in_use > gpu.memory / 10, State::warning,
                     "less memory is left for a rank: nvidia-smi shows which processes use it; end them, or name other "
                     "GPUs in launch.devices",
                     value + "; " + human_bytes(gpu.in_use.value_or(0)) + " in use"}});
  }
  return findings.list();
}

std::vector<Finding> judge_limits(const Limits& limits, bool rdma) {
  Findings findings("limits");
  if (limits.memlock) {
    findings.judge("memlock", text_of(*limits.memlock, human_bytes),
                   {{limits.memlock->has_value(), rdma ? State::warning : State::note,
                     std::string("UCX and NCCL with RDMA") + (rdma ? "" : ", and nothing else,") +
                         " need `ulimit -l unlimited` (/etc/security/limits.conf; docker --ulimit memlock=-1; "
                         "LimitMEMLOCK=infinity for slurmd)"}});
  }
  if (limits.files) {
    findings.judge("open files", text_of(*limits.files, console::human_count),
                   {{below(*limits.files, kFewFiles), State::warning, "too few for some ranks: `ulimit -n 65536`"},
                    {below(*limits.files, kUsualFiles + 1), State::note,
                     "each rank holds several sockets per peer, and the launcher several pipes per rank: `ulimit -n "
                     "65536` for more than a hundred ranks"}});
  }
  if (limits.processes) {
    findings.judge("processes", text_of(*limits.processes, console::human_count),
                   {{below(*limits.processes, kFewProcesses), State::warning,
                     "every thread of every rank of this user counts: `ulimit -u 65536`"}});
  }
  if (limits.group_processes) {
    findings.judge("processes, cgroup", console::human_count(*limits.group_processes),
                   {{*limits.group_processes < static_cast<int64_t>(kFewProcesses), State::warning,
                     "every thread of every rank counts: raise it (docker --pids-limit, TasksMax of systemd, "
                     "podPidsLimit of Kubernetes)"}});
  }
  const Space &shm = limits.shm, &folder = limits.job_folder;
  findings.judge(
      "/dev/shm", human_bytes(shm.size) + ", " + human_bytes(shm.free) + " free",
      {{!shm.error.empty(), State::error,
        "shm, ucx and nccl keep shared memory there: mount -t tmpfs -o size=8g tmpfs /dev/shm (in a container, docker "
        "run --shm-size=8g)",
        shm.error},
       {shm.size < kGiB, State::warning,
        "ranks of one host share buffers there: docker run --shm-size=8g (Kubernetes: an emptyDir with medium: Memory "
        "at /dev/shm; otherwise mount -o remount,size=8g /dev/shm)"},
       {shm.free < kGiB, State::warning, "remove files that ended programs left there: ls -l /dev/shm"}});
  const std::string about = "ddprun makes a folder for each job there: ";
  const std::string other = ", or set XDG_RUNTIME_DIR or TMPDIR to a folder of this user";
  findings.judge(
      "job folder", folder.path + ", " + human_bytes(folder.free) + " free",
      {{!folder.error.empty(), State::error, about + "make it writable" + other, folder.path + ": " + folder.error},
       {folder.free < kLittleSpace, State::warning, about + "free some space" + other}});
  return findings.list();
}

std::vector<Finding> judge_launcher(const Launcher& launcher) {
  Findings findings("launcher");
  findings.judge("launcher", launcher.description.empty() ? "none: ddprun starts the ranks" : launcher.description,
                 {{!launcher.error.empty(), State::error,
                   "ddprun would end with this error: set or unset the variables that it names", launcher.error}});
  return findings.list();
}

}  // namespace ddprun::doctor
