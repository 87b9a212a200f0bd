// The job's private folder: keys, failure records and the progress table of the ranks of one host. And its files, which
// appear atomically: a reader sees a complete file or none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace ddprun::launch {

// A new folder "ddprun-job-XXXXXX" (0700) in job_folder_base(). The destructor removes the folder with its content.
class JobFolder {
 public:
  JobFolder();  // throws Error(failure)
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The parent of job folders: $XDG_RUNTIME_DIR if that is a folder of this user, otherwise $TMPDIR, otherwise /tmp. A
// variable counts if it names a folder in which this user may write, with an absolute path.
std::string job_folder_base();

// Throws Error(rendezvous) unless `folder` belongs to this user and no one else can access it, because the keys in it
// are trusted.
void require_private(const std::string& folder);

// Creates `folder`/`name` with `content` atomically. An existing file does not change, and the result is
// std::errc::file_exists. Not synced to disk, because a job's files need not survive the machine. Thread-safe.
std::error_code publish(const std::string& folder, const std::string& name, std::string_view content);

// The content of a file, or nothing if it does not exist. Throws Error(rendezvous) if it cannot be read.
std::optional<std::string> read_whole(const std::string& path);

}  // namespace ddprun::launch
