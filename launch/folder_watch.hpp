// Waits for new names in a folder: with inotify, or by polling if the user has no inotify instances left.
#pragma once

#include <chrono>
#include <string>

#include "base/unique_fd.hpp"

namespace ddprun::launch {

// One thread at a time. To miss nothing, construct it first, then check for the file, then wait.
class FolderWatch {
 public:
  explicit FolderWatch(const std::string& folder);

  // Returns when a name may have appeared, or after `limit`. May return early.
  void wait(std::chrono::milliseconds limit);

  // For the caller's own poll loop: readable when a name has appeared. -1 without inotify; the caller must then check
  // periodically.
  int fd() const { return inotify_.get(); }
  void drain();

 private:
  UniqueFd inotify_;
};

}  // namespace ddprun::launch
