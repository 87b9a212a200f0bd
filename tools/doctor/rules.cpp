// All rules except those about the network.
#include "tools/doctor/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/console/table.hpp"

namespace ddprun::doctor {
namespace {

using console::human_bytes;
using console::human_count;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = 1024 * kMiB;
constexpr int64_t kLittleSpace = 64 * kMiB;
constexpr uint64_t kFewFiles = 256;       // not enough for a launcher with some ranks
constexpr uint64_t kUsualFiles = 1024;    // many distributions' default
constexpr uint64_t kFewProcesses = 1024;  // a rank has tens of threads, and each counts

void judge_plugins(const Facts& facts, Findings& findings) {
  findings.judge("plugins", std::nullopt,
                 {{facts.plugins.empty(), State::warning,
                   "install or build the plugins, or name their folder: --plugin-path DIR or DDPRUN_PLUGIN_PATH",
                   fmt::format("none in {}", fmt::join(facts.plugin_folders, ", "))}});
  std::map<std::string, std::string> first;
  for (const Plugin& plugin : facts.plugins) {
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
}

void judge_cores(const Facts& facts, Findings& findings) {
  const Cores& cores = facts.cores;
  const std::string value = fmt::format("{} of {}", cores.usable, cores.online);
  findings.judge(
      "usable", value,
      {{cores.usable <= 0, State::note, "set launch.threads to the cores of each rank", "/proc does not report them"},
       {cores.usable < cores.online, State::note,
        "the affinity mask excludes the others: ask the launcher for more cores (srun --cpus-per-task, mpirun "
        "--bind-to none, docker --cpuset-cpus) if the ranks of this host need them",
        value + ": CPUs " + cores.usable_list}});
  const double time = facts.group.cpus.value_or(INFINITY);
  const std::string cpus = fmt::format("{:.4g} CPUs", time);
  findings.judge("CPU time", facts.group.cpus ? cpus : "no limit",
                 {{time < static_cast<double>(cores.usable), State::warning,
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
}

void judge_memory(const Facts& facts, Findings& findings) {
  const Memory& memory = facts.memory;
  const std::string of = memory.total ? " of " + human_bytes(*memory.total) : "";
  findings.judge("available", human_bytes(memory.available.value_or(0)) + of,
                 {{!memory.available, State::note, "find out with free -h", "/proc/meminfo does not report it"},
                  {memory.available < kGiB, State::warning,
                   "each rank needs some hundred MiB for LibTorch alone: end other programs, or start fewer ranks"}});
  const int64_t limit = facts.group.memory.value_or(INT64_MAX);
  const int64_t left = limit - std::min(facts.group.memory_in_use.value_or(0), limit);
  findings.judge("cgroup limit", "none",
                 {{limit < memory.total.value_or(INT64_MAX), left < kGiB ? State::warning : State::note,
                   "the kernel kills a rank when all ranks of this host together need more: raise the limit (docker "
                   "--memory, srun --mem, resources.limits.memory) if a run ends with SIGKILL",
                   human_bytes(limit) + ", " + human_bytes(left) + " left"}});
}

void judge_numa(const Facts& facts, Findings& findings) {
  const auto usable = std::ranges::count(facts.numa, true, &NumaNode::usable);
  for (const NumaNode& node : facts.numa) {
    const std::string memory = node.memory ? ", " + human_bytes(*node.memory) : "";
    findings.judge("node " + std::to_string(node.number),
                   (node.cpus.empty() ? "no CPUs" : "CPUs " + node.cpus) + memory +
                       (node.usable ? "" : ", not in the affinity mask"),
                   {{node.usable && usable > 1, State::note,
                     "bind each rank to one node, because memory of another node is slower: srun --cpu-bind=ldoms, "
                     "mpirun --map-by numa --bind-to numa, numactl --cpunodebind=N --membind=N"}});
  }
  if (facts.numa.empty()) findings.judge("nodes", "the kernel reports none");
}

void judge_gpus(const Facts& facts, Findings& findings) {
  const Gpus& gpus = facts.gpus;
  const std::string version = gpus.driver_version.empty() ? "NVIDIA" : "NVIDIA " + gpus.driver_version;
  const State state = findings.judge(
      "driver", version + ", for CUDA " + gpus.cuda,
      {{gpus.hidden, State::note, "unset it to examine and use them", "CUDA_VISIBLE_DEVICES hides all GPUs"},
       {!gpus.driver && gpus.list.empty(), State::note,
        "training on the CPU works without one; launch.device = \"cuda\" needs a GPU and its driver",
        "no NVIDIA driver, no GPU"},
       {!gpus.error.empty(), State::error,
        "check with nvidia-smi; start a container with --gpus all; training on the CPU works without a GPU",
        version + ": " + gpus.error}});
  for (std::size_t i = 0; state == State::ok && i < gpus.list.size(); ++i) {
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
}

// Nothing for a limit that is not reported.
std::optional<std::string> text_of(const std::optional<Limit>& limit, std::string (*human)(int64_t)) {
  if (!limit) return std::nullopt;
  return *limit ? human(static_cast<int64_t>(std::min<uint64_t>(**limit, INT64_MAX))) : "unlimited";
}

bool below(const std::optional<Limit>& limit, uint64_t least) {
  return limit && *limit && **limit < least;
}

void judge_limits(const Facts& facts, Findings& findings) {
  const Limits& limits = facts.limits;
  const bool rdma = !facts.network.rdma_devices.empty();
  findings.judge("memlock", text_of(limits.memlock, human_bytes),
                 {{below(limits.memlock, UINT64_MAX), rdma ? State::warning : State::note,
                   fmt::format("UCX and NCCL with RDMA{} need `ulimit -l unlimited` (/etc/security/limits.conf; docker "
                               "--ulimit memlock=-1; LimitMEMLOCK=infinity for slurmd)",
                               rdma ? "" : ", and nothing else,")}});
  findings.judge("open files", text_of(limits.files, human_count),
                 {{below(limits.files, kFewFiles), State::warning, "too few for some ranks: `ulimit -n 65536`"},
                  {below(limits.files, kUsualFiles + 1), State::note,
                   "each rank holds several sockets per peer, and the launcher several pipes per rank: `ulimit -n "
                   "65536` for more than a hundred ranks"}});
  findings.judge("processes", text_of(limits.processes, human_count),
                 {{below(limits.processes, kFewProcesses), State::warning,
                   "every thread of every rank of this user counts: `ulimit -u 65536`"}});
  std::optional<Limit> of_group;
  if (facts.group.processes) of_group = Limit(*facts.group.processes);
  findings.judge("processes, cgroup", text_of(of_group, human_count),
                 {{below(of_group, kFewProcesses), State::warning,
                   "every thread of every rank counts: raise it (docker --pids-limit, TasksMax of systemd, "
                   "podPidsLimit of Kubernetes)"}});
  const Space &shm = limits.shm, &folder = limits.job_folder;
  findings.judge(
      "/dev/shm", human_bytes(shm.size) + ", " + human_bytes(shm.free) + " free",
      {{!shm.error.empty(), State::warning,
        "nccl keeps shared memory there, and ucx with the transport posix: mount -t tmpfs -o size=8g tmpfs /dev/shm (in "
        "a container, docker run --shm-size=8g)",
        shm.error},
       {shm.size < kGiB, State::note,
        "only nccl, and ucx with the transport posix, keep buffers there, and may need more: docker run --shm-size=8g "
        "(Kubernetes: an emptyDir with medium: Memory at /dev/shm; otherwise mount -o remount,size=8g /dev/shm)"},
       {shm.free < kGiB, State::warning, "remove files that ended programs left there: ls -l /dev/shm"}});
  const bool writable = folder.error.empty();
  findings.judge("job folder", folder.path + ", " + human_bytes(folder.free) + " free",
                 {{!writable || folder.free < kLittleSpace, writable ? State::warning : State::error,
                   fmt::format("ddprun makes a folder for each job there: {}, or set XDG_RUNTIME_DIR or TMPDIR to a "
                               "folder of this user",
                               writable ? "free some space" : "make it writable"),
                   writable ? "" : folder.path + ": " + folder.error}});
}

void judge_launcher(const Facts& facts, Findings& findings) {
  const Launcher& launcher = facts.launcher;
  findings.judge("launcher", launcher.description.empty() ? "none: ddprun starts the ranks" : launcher.description,
                 {{!launcher.error.empty(), State::error,
                   "ddprun would end with this error: set or unset the variables that it names", launcher.error}});
}

constexpr std::pair<const char*, void (*)(const Facts&, Findings&)> kGroups[] = {
    {"plugins", judge_plugins}, {"cores", judge_cores},         {"memory", judge_memory},
    {"NUMA", judge_numa},       {"GPUs", judge_gpus},           {"network", judge_network},
    {"limits", judge_limits},   {"variables", judge_variables}, {"launcher", judge_launcher}};

}  // namespace

const char* name_of(State state) {
  constexpr const char* kNames[] = {"ok", "note", "warning", "error"};
  return kNames[static_cast<std::size_t>(state)];
}

State Findings::judge(const std::string& name, const std::optional<std::string>& value,
                      const std::vector<Rule>& rules) {
  const auto rule = std::ranges::find(rules, true, &Rule::applies);
  if (rule == rules.end()) {
    if (value) list_.push_back({group_, name, State::ok, *value, ""});
    return State::ok;
  }
  list_.push_back({group_, name, rule->state, rule->value.empty() ? value.value_or("") : rule->value, rule->advice});
  return rule->state;
}

std::vector<Finding> judge(const Facts& facts) {
  Findings findings;
  for (const auto& [group, judge_group] : kGroups) {
    findings.begin(group);
    judge_group(facts, findings);
  }
  return findings.list();
}

}  // namespace ddprun::doctor
