// The job's private folder: keys, failure records and the progress table, for the ranks of one host.
#pragma once

#include <string>

#include "launch/unique_fd.hpp"

namespace ddprun::launch {

// A new folder "ddprun-job-XXXXXX" (0700) under $XDG_RUNTIME_DIR, where that is a folder of this user, else under /tmp.
// Held by one process; the folder and all in it go with this object.
class JobFolder {
 public:
  JobFolder();  // throws Error(failure)
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  UniqueFd lock_;  // flock on "lock" in it: held means that the launcher, or its guardian, lives
};

// Where job folders are made.
std::string job_folder_base();

// Removes the folders in `base` that launchers of this user left behind when they were killed: those whose lock nobody
// holds. Never waits, never throws; a folder that cannot be removed stays.
void remove_stale_job_folders(const std::string& base) noexcept;

}  // namespace ddprun::launch
