// The folder of one run's checkpoints: commits are atomic, the newest `keep` stay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"

namespace ddprun::checkpoint {

// A commit is a model file, with what resuming needs beside it: a state file of each rank. The states are written
// first; the model file's name is what makes the commit.
struct Commit {
  int64_t step = 0;  // global, from its name
  std::string path;  // <dir>/step-00000469.safetensors
};

// The state file of a rank that belongs to a commit: <dir>/step-00000469.state-rank1.safetensors.
std::string state_path(const Commit& commit, int rank);

// Writes a rank's state of a commit that is to come, as CheckpointFolder::save writes: whole or not at all, synced. The
// folder is made where it is missing. Every rank calls it, and all have returned before rank 0 saves the commit. Throws
// Error(failure) with path, bytes and errno.
void save_state(const std::string& dir, int64_t step, int rank, const std::vector<TensorView>& tensors,
                const Metadata& metadata);

// One writer (rank 0) at a time; readers may look at any time, from any process.
class CheckpointFolder {
 public:
  // Creates the folder with its parents. keep >= 1. What writers that are dead left is removed: temporary files, and
  // states without their commit. Throws Error(failure) with path and errno.
  CheckpointFolder(std::string dir, int64_t keep);

  // Commits the state after `step`: written aside in the same folder, synced, renamed, the folder synced; then all but
  // the `keep` newest are removed, each with its states, the model file first. The metadata gets "step" and "epoch". A
  // commit of the same step is replaced. Returns its path. Throws Error(failure) with path, bytes and errno; then the
  // temporary file is gone and the older commits are untouched.
  std::string save(int64_t step, int64_t epoch, const std::vector<TensorView>& tensors, const Metadata& metadata);

  // Keeps the weights after `step` in best.safetensors, in place of what was there, whatever becomes of the commits.
  // Whole or not at all, as save(). Returns its path.
  std::string save_best(int64_t step, int64_t epoch, const std::vector<TensorView>& tensors, const Metadata& metadata);

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
// Removes the temporary files of writers that are dead. Throws Error(failure) when the folder cannot be listed.
void remove_left_overs(const std::string& dir);
// The commit that a model file is; none where its name is not that of one.
std::optional<Commit> commit_of(const std::string& path);
// <dir>/best.safetensors, whether it is there or not.
std::string best_path(const std::string& dir);

}  // namespace ddprun::checkpoint
