// The folder of one run's checkpoints: commits are atomic; the newest `keep`, or all, are kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"

namespace ddprun::checkpoint {

// A commit is a model file and, for resuming, a state file of each rank. The states are written first; the renaming of
// the model file completes the commit.
struct Commit {
  int64_t step = 0;  // step of the run, from the file name
  std::string path;  // <dir>/step-00000469.safetensors
};

// The commit after a step in a folder, whether or not it exists.
Commit commit_at(const std::string& dir, int64_t step);
// The state file of a rank for a commit: <dir>/step-00000469.state-rank1.safetensors.
std::string state_path(const Commit& commit, int rank);

// Writes a rank's state for the next commit, atomically and synced as CheckpointFolder::save does. Creates the folder
// if it is missing. Every rank must have returned from it before rank 0 saves the commit. Throws Error(failure) with
// path, bytes and errno.
void save_state(const std::string& dir, int64_t step, int rank, const std::vector<TensorView>& tensors,
                const Metadata& metadata);

// One writer (rank 0) at a time; any process may read at any time.
class CheckpointFolder {
 public:
  // Creates the folder with its parents. keep >= 1, or 0: all. Removes what dead writers left: temporary files, and
  // states without a commit. Throws Error(failure) with path and errno.
  CheckpointFolder(std::string dir, int64_t keep);

  // Commits the state after `step`: writes a temporary file in the same folder, syncs it, renames it, and syncs the
  // folder. Then removes all but the `keep` newest commits with their states, each model file before its states. Adds
  // "step" and "epoch" to the metadata. Replaces a commit of the same step. Returns the path. Throws Error(failure)
  // with path, bytes and errno; the temporary file is removed then, and older commits are unchanged.
  std::string save(int64_t step, int64_t epoch, const std::vector<TensorView>& tensors, const Metadata& metadata);

  // Saves the weights after `step` in best.safetensors, atomically as save() does; replaces an older file. It is kept
  // when commits are removed. Returns its path.
  std::string save_best(int64_t step, int64_t epoch, const std::vector<TensorView>& tensors, const Metadata& metadata);

  const std::string& dir() const { return dir_; }

 private:
  std::string dir_;
  int64_t keep_;
};

// Replaces the file where the links of `path` end, atomically: writes a temporary file in the same folder, syncs it,
// renames it, and syncs the folder. First removes what dead writers of this path left. The folder must exist. Throws
// Error(failure) with path, bytes and errno; the old file is unchanged then, and no temporary file stays.
void replace_safetensors(const std::string& path, const std::vector<TensorView>& tensors, const Metadata& metadata);

// The commits of a folder, oldest first; none if it does not exist. Other file names are ignored, and the contents are
// not read. Throws Error(failure) if it cannot be listed.
std::vector<Commit> list_commits(const std::string& dir);
// Reads the model file and all state files of a commit. Throws Error(usage) that names the first file that is damaged
// or missing. The metadata "world" of rank 0's state has the number of states.
void verify(const Commit& commit);
// The ranks whose states a rank must read. Rank 0's has what is common. As many ranks as saved the commit: each reads
// its own too. Another number: rank 0 reads and checks all, also to add up their totals.
std::vector<int> states_for(int rank, int saved, bool same_world);
// Reads and checks the states of these ranks. Throws what read_safetensors() throws.
std::map<int, File> read_states(const Commit& commit, const std::vector<int>& ranks);

// The newest commit of a folder that verify() accepts; nothing if the folder has no commit. Logs a warning with
// the error of each newer commit. Throws the error of the newest commit if all are damaged.
std::optional<Commit> newest_whole(const std::string& dir);
// Removes the temporary files of dead writers, from a run folder too. Throws Error(failure) if the folder cannot be
// listed.
void remove_left_overs(const std::string& dir);
// The commit of a model file; nothing if the name is not that of one.
std::optional<Commit> commit_of(const std::string& path);
// <dir>/best.safetensors, whether or not it exists.
std::string best_path(const std::string& dir);

}  // namespace ddprun::checkpoint
