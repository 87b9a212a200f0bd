// The environment of a run: what is needed to judge or to reproduce its results.
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
  std::string cpu_model;   // "" if /proc/cpuinfo does not name it
  int64_t cores = 0;       // usable by this process (its affinity mask)
  int64_t host_cores = 0;  // online in the machine
  int64_t memory_bytes = 0;
  std::string load;  // the machine's load averages at the start: was it idle?
  // Values that only the caller knows: "torch", "plugin.gloo", "library.gloo", "gpu" -> text. Written as further keys.
  std::map<std::string, std::string> extra;
};

// Fills everything. Never throws: what the system does not report stays empty.
Environment collect_environment(std::map<std::string, std::string> extra);
// Peak memory of this process in bytes; -1 if the system does not report it.
int64_t peak_memory_bytes();

std::string to_json(const Environment& environment);

// Rank 0: <run_dir>/environment.json. Throws Error(failure) with path and errno.
void write_environment(const std::string& run_dir, const Environment& environment);

}  // namespace ddprun::record
