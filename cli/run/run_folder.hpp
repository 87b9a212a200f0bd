// The run folder on every host of a job.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/config/experiment.hpp"
#include "cli/run/between_hosts.hpp"
#include "cli/run/connections.hpp"
#include "launch/world.hpp"

namespace ddprun::run {

// A folder with the same name in experiment.output of each host. If a host does not share rank 0's disk, its folder has
// the records of its ranks. All functions except path() and is_split() are collective; so is the constructor, if this
// rank does not join later.
class RunFolder {
 public:
  // given: the folder that the launcher of this host has made; empty: rank 0 makes one. joins: this rank takes the
  // place of a dead one. Throws Error(failure), and as Store.
  RunFolder(Store* store, const launch::World& world, std::string given, const config::Experiment& experiment,
            bool joins);
  // Finds out which ranks share rank 0's disk: before the functions below, and again whenever the ranks have changed.
  // The backend of `connections` must outlive this object or the next call. Throws as the constructor.
  void meet(const Connections& connections, const launch::World& world);

  const std::string& path() const { return path_; }
  // Whether any rank does not see rank 0's folder.
  bool is_split() const { return !remote_.empty(); }

  // Moves one file of each rank that does not see rank 0's folder to rank 0. Throws as gather().
  void move_to_rank0(const std::function<std::string(int rank)>& path_of) const;

  // Copies the files "*rank<N>*" of ranks that do not see rank 0's folder into it. Throws as CommBackend does, and
  // Error(failure) for a file that cannot be read or written.
  void gather() const;

 private:
  void copy(int from, const std::string& path, const Pass& pass) const;

  const config::Experiment& experiment_;
  const int number_;  // of this rank as the job began: in the names of its files
  comm::Group ranks_;
  int rank_ = 0;
  std::string path_;
  std::vector<int> remote_;  // the ranks that do not see rank 0's folder
};

}  // namespace ddprun::run
