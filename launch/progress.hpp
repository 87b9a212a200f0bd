// The progress of every rank, in a small shared-memory table that the launcher maps too. In it the launcher reads the
// step, phase and bucket of a rank that died, and requests the ranks to stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "ddprun/phase.hpp"

namespace ddprun::launch {

struct Progress {
  int64_t step = 0;  // global step, from 1; 0 before the first
  Phase phase = Phase::start;
  int32_t bucket = -1;  // of an allreduce, otherwise -1
  // The shortest of the last three steps, in microseconds, without the time in which the rank waited for other ranks;
  // 0: not known.
  int64_t own_us = 0;
};

// "step 57 phase allreduce bucket 2"; before the first step "phase data".
std::string text(const Progress& progress);

// Memory of the ranks of one host. Uses relaxed atomics, which are cheap enough for each phase of each step.
// Thread-safe.
class ProgressTable {
 public:
  // The file "progress" of the job's folder, which the launcher maps first, and then each rank. Without a folder:
  // memory of this process, for ranks without ddprun's launcher. Throws Error(rendezvous).
  ProgressTable(const std::string& job_dir, int size);
  ~ProgressTable();
  ProgressTable(const ProgressTable&) = delete;
  ProgressTable& operator=(const ProgressTable&) = delete;

  // Does not change own_us.
  void set(int rank, Progress progress);
  void set_own_us(int rank, int64_t us) { slots_[rank].own_us.store(us, std::memory_order_relaxed); }
  Progress get(int rank) const;

  // Requests all ranks of the job to stop and save. The ranks agree on the last step (train/loop/agreement.hpp). A rank
  // that has agreed to stop also calls it, so that the launcher knows.
  void request_stop() { slots_[size_].word.store(1, std::memory_order_relaxed); }
  bool stop_requested() const { return slots_[size_].word.load(std::memory_order_relaxed) != 0; }

 private:
  struct alignas(64) Slot {  // a cache line per rank, because they write often
    std::atomic<uint64_t> word;
    std::atomic<int64_t> own_us;
  };

  const int size_;
  Slot* slots_ = nullptr;  // one per rank, then one for the request to stop
};

}  // namespace ddprun::launch
