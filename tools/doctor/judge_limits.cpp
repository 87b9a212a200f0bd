#include <fmt/format.h>

#include <algorithm>

#include "cli/console/units.hpp"
#include "tools/doctor/judge.hpp"

namespace ddprun::doctor {
namespace {

using console::human_bytes;
using console::human_count;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kLittleShm = 1024 * kMiB;
constexpr int64_t kLittleSpace = 64 * kMiB;
constexpr uint64_t kFewFiles = 256;       // not enough for a launcher with some ranks
constexpr uint64_t kUsualFiles = 1024;    // many distributions' default
constexpr uint64_t kFewProcesses = 1024;  // a rank has tens of threads, and each counts

int64_t clamped(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
}

void judge_memlock(Findings& findings, const std::optional<Limit>& limit, bool rdma) {
  if (!limit) return;
  if (!*limit) {
    findings.ok("memlock", "unlimited");
  } else {
    findings.add(rdma ? State::warning : State::note, "memlock", human_bytes(clamped(**limit)),
                 std::string("UCX and NCCL with RDMA") + (rdma ? "" : ", and nothing else,") +
                     " need `ulimit -l unlimited` (/etc/security/limits.conf; docker --ulimit memlock=-1; "
                     "LimitMEMLOCK=infinity for slurmd)");
  }
}

void judge_files(Findings& findings, const std::optional<Limit>& limit) {
  if (!limit) return;
  if (!*limit) {
    findings.ok("open files", "unlimited");
    return;
  }
  const std::string value = human_count(clamped(**limit));
  const char* advice =
      "each rank holds several sockets per peer, and the launcher several pipes per rank: `ulimit -n 65536` for more "
      "than a hundred ranks";
  if (**limit < kFewFiles) {
    findings.add(State::warning, "open files", value, "too few for some ranks: `ulimit -n 65536`");
  } else if (**limit <= kUsualFiles) {
    findings.add(State::note, "open files", value, advice);
  } else {
    findings.ok("open files", value);
  }
}

void judge_processes(Findings& findings, const Limits& limits) {
  if (limits.processes && *limits.processes && **limits.processes < kFewProcesses) {
    findings.add(State::warning, "processes", human_count(clamped(**limits.processes)),
                 "every thread of every rank of this user counts: `ulimit -u 65536`");
  } else if (limits.processes) {
    findings.ok("processes", *limits.processes ? human_count(clamped(**limits.processes)) : "unlimited");
  }
  if (!limits.group_processes) return;
  const std::string value = human_count(*limits.group_processes);
  if (*limits.group_processes < static_cast<int64_t>(kFewProcesses)) {
    findings.add(State::warning, "processes, cgroup", value,
                 "every thread of every rank counts: raise it (docker --pids-limit, TasksMax of systemd, podPidsLimit "
                 "of Kubernetes)");
  } else {
    findings.ok("processes, cgroup", value);
  }
}

void judge_shm(Findings& findings, const Space& shm) {
  const std::string value = human_bytes(shm.size) + ", " + human_bytes(shm.free) + " free";
  if (!shm.error.empty()) {
    findings.add(State::error, "/dev/shm", shm.error,
                 "shm, ucx and nccl keep shared memory there: mount -t tmpfs -o size=8g tmpfs /dev/shm (in a "
                 "container, docker run --shm-size=8g)");
  } else if (shm.size < kLittleShm) {
    findings.add(
        State::warning, "/dev/shm", value,
        "ranks of one host share buffers there: docker run --shm-size=8g (Kubernetes: an emptyDir with medium: "
        "Memory at /dev/shm; otherwise mount -o remount,size=8g /dev/shm)");
  } else if (shm.free < kLittleShm) {
    findings.add(State::warning, "/dev/shm", value, "remove files that ended programs left there: ls -l /dev/shm");
  } else {
    findings.ok("/dev/shm", value);
  }
}

void judge_job_folder(Findings& findings, const Space& folder) {
  const std::string value = folder.path + ", " + human_bytes(folder.free) + " free";
  if (!folder.error.empty()) {
    findings.add(State::error, "job folder", folder.path + ": " + folder.error,
                 "ddprun makes a folder for each job there: make it writable, or set XDG_RUNTIME_DIR or TMPDIR to a "
                 "folder of this user");
  } else if (folder.free < kLittleSpace) {
    findings.add(State::warning, "job folder", value,
                 "ddprun makes a folder for each job there: free some space, or set XDG_RUNTIME_DIR or TMPDIR to a "
                 "folder of this user");
  } else {
    findings.ok("job folder", value);
  }
}

}  // namespace

std::vector<Finding> judge_limits(const Limits& limits, bool rdma) {
  Findings findings("limits");
  judge_memlock(findings, limits.memlock, rdma);
  judge_files(findings, limits.files);
  judge_processes(findings, limits);
  judge_shm(findings, limits.shm);
  judge_job_folder(findings, limits.job_folder);
  return std::move(findings).list();
}

}  // namespace ddprun::doctor
