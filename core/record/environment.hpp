// Where and with what a run was made: what one needs to trust, or to repeat, its figures.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace ddprun::record {

struct Environment {
  std::string ddprun;    // version
  std::string compiler;  // of this build: "GCC 12.2.0"
  std::string date;      // local time with offset, ISO 8601
  std::string host;
  std::string kernel;      // "Linux 6.1.0"
  std::string cpu_model;   // "" where /proc/cpuinfo does not say
  int64_t cores = 0;       // that this process may use (its affinity mask)
  int64_t host_cores = 0;  // online in the machine
  int64_t memory_bytes = 0;
  std::string load;  // the machine's load averages at the start: how idle it was
  // What only the caller knows: "torch", "plugin.gloo", "library.gloo", "gpu" -> text. Written as keys beside the
  // others.
  std::map<std::string, std::string> extra;
};

// Fills everything. Never throws: what the system does not tell stays empty.
Environment collect_environment(std::map<std::string, std::string> extra);

// The most memory that this process has held at once, in bytes; -1 where the system does not tell.
int64_t peak_memory_bytes();

// Minor page faults of this process so far, all threads: pages that the kernel had to find, and clear, when they were
// first touched; -1 where the system does not tell.
int64_t page_faults();

std::string to_json(const Environment& environment);

// Rank 0: <run_dir>/environment.json. Throws Error(failure) with path and errno.
void write_environment(const std::string& run_dir, const Environment& environment);

}  // namespace ddprun::record
