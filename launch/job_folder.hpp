// The job's private folder: keys, failure records and the progress table of the ranks of one host.
#pragma once

#include <string>

#include "base/unique_fd.hpp"

namespace ddprun::launch {

// A new folder "ddprun-job-XXXXXX" (0700) in job_folder_base(). One process owns it. The destructor removes the folder with its content.
class JobFolder {
 public:
  JobFolder();  // throws Error(failure)
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  UniqueFd lock_;  // flock on the file "lock" in the folder: held as long as the launcher or its guardian lives
};

// The parent of job folders: $XDG_RUNTIME_DIR if that is a folder of this user, otherwise $TMPDIR, otherwise /tmp. A
// variable counts if it names a folder in which this user may write, with an absolute path.
std::string job_folder_base();

// Removes the folders in `base` that killed launchers of this user left behind: those whose lock is not held. Never
// waits, never throws; a folder that cannot be removed stays.
void remove_stale_job_folders(const std::string& base) noexcept;

}  // namespace ddprun::launch
