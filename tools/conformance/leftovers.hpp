// What a backend may leave on the machine: shared memory and temporary files.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/conformance/temp_dir.hpp"

namespace ddprun::conformance {

class Leftovers {
 public:
  // While this lives, TMPDIR is a folder of our own, so that a file in it is the backend's and nobody else's. The
  // folder of shared memory can be another in a test of this class, whose litter would be found by others.
  explicit Leftovers(std::string shared_memory = "/dev/shm");
  ~Leftovers();
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

  // What has come since the last call (or the constructor) and does not go: names of this user in shared memory that no
  // living process holds open, System V segments that one of `ranks` made, files in TMPDIR.
  std::vector<std::string> found(const std::vector<pid_t>& ranks);

 private:
  const std::string shared_memory_;
  testing::TempDir folder_;
  std::optional<std::string> old_folder_;  // what TMPDIR was
  std::set<std::string> known_;
};

}  // namespace ddprun::conformance
