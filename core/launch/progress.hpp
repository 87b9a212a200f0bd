// The progress of every rank, in a small shared-memory table that the launcher maps too. In it the launcher reads the
// step, phase and bucket of a rank that died, and writes the step after which all ranks stop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ddprun/phase.hpp"

namespace ddprun::launch {

struct Progress {
  int64_t step = 0;  // global step, from 1; 0 before the first
  Phase phase = Phase::start;
  int32_t bucket = -1;  // of an allreduce, otherwise -1
};

// A file of fixed size in the job's folder, mapped shared. Uses relaxed atomics, which are cheap enough for each phase
// of each step. Thread-safe.
class ProgressTable {
 public:
  // The launcher creates it; ranks open it. Both throw Error(rendezvous).
  static std::unique_ptr<ProgressTable> create(const std::string& job_dir, int size);
  static std::unique_ptr<ProgressTable> open(const std::string& job_dir, int size);
  virtual ~ProgressTable() = default;

  virtual void set(int rank, Progress progress) = 0;
  virtual Progress get(int rank) const = 0;

  // The step after which all ranks stop and save. On the first SIGINT or SIGTERM the launcher chooses a step that no
  // rank can have passed. 0 if no stop was requested. Returns the chosen step.
  virtual int64_t request_stop() = 0;
  virtual int64_t stop_after() const = 0;
};

}  // namespace ddprun::launch
