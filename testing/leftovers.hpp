// Finds what a backend leaves on the machine: shared memory and temporary files.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "testing/temp_dir.hpp"

namespace ddprun::conformance {

// The names in a folder, not in the folders below it.
std::set<std::string> names_in(const std::string& folder);
// True if the file is of this user, no living process holds it open, and it does not disappear soon.
bool stays(const std::string& path);

class Leftovers {
 public:
  // While this object lives, TMPDIR is a private folder, so that each file in it comes from the backend. A test of this
  // class can set another shared-memory folder, so that other tests do not find its leftovers.
  explicit Leftovers(std::string shared_memory = "/dev/shm");
  ~Leftovers();
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

  // What was created since the last call (or the constructor) and remains: this user's names in shared memory that no
  // living process holds open, System V segments of `ranks`, files in TMPDIR.
  std::vector<std::string> found(const std::vector<pid_t>& ranks);

 private:
  const std::string shared_memory_;
  testing::TempDir folder_;
  std::optional<std::string> old_folder_;  // the previous TMPDIR
  std::set<std::string> known_;
};

}  // namespace ddprun::conformance
