// Whether a run is under way: rank 0 holds a lock on a file of the run folder until its process ends, however it ends.
#pragma once

#include <string>

namespace ddprun::record {

inline constexpr const char* kEpochsFile = "epochs.jsonl";  // the locked file

// Locks an open file until its descriptor is closed. Does nothing if the file system has no locks.
void lock_run(int fd);

// Whether any process holds the lock of this run folder. False if the file system has no locks. Takes no lock.
bool is_under_way(const std::string& run_dir);

}  // namespace ddprun::record
