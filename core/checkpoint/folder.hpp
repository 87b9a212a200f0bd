// The folder of one run's checkpoints: commits are atomic, the newest `keep` stay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"

namespace ddprun::checkpoint {

struct Commit {
  int64_t step = 0;  // global, from its name
  std::string path;  // <dir>/step-00000469.safetensors
};

// One writer (rank 0) at a time; readers may look at any time, from any process.
class CheckpointFolder {
 public:
  // Creates the folder with its parents. keep >= 1. Temporary files of writers that are dead are removed.
  // Throws Error(failure) with path and errno.
  CheckpointFolder(std::string dir, int64_t keep);

  // Commits the state after `step`: written aside in the same folder, synced, renamed, the folder synced; then all but
  // the `keep` newest are removed. The metadata gets "step" and "epoch". A commit of the same step is replaced. Returns
  // its path. Throws Error(failure) with path, bytes and errno; then the temporary file is gone and the older commits
  // are untouched.
  std::string save(int64_t step, int64_t epoch, const std::vector<TensorView>& tensors, const Metadata& metadata);

  // Every commit, oldest first; files of other names are not looked at. The contents are not read.
  std::vector<Commit> commits() const;
  std::optional<Commit> newest() const;

  const std::string& dir() const { return dir_; }

 private:
  void prune() const;

  std::string dir_;
  int64_t keep_;
};

// The commits of a folder that need not exist, oldest first. Throws Error(failure) when it cannot be listed.
std::vector<Commit> list_commits(const std::string& dir);

}  // namespace ddprun::checkpoint
