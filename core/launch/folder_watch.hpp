// Waits for new names in a folder: by inotify, or by short sleeps where the user's inotify instances are used up.
#pragma once

#include <chrono>
#include <string>

#include "launch/unique_fd.hpp"

namespace ddprun::launch {

// One thread at a time. Make it first, then look for the file, then wait: so that nothing falls between.
class FolderWatch {
 public:
  explicit FolderWatch(const std::string& folder);

  // Returns when a name may have appeared, at the latest after `limit`. May return early.
  void wait(std::chrono::milliseconds limit);

  // For a poll loop of one's own: readable when a name has appeared; -1 where there is no inotify and one must look now
  // and then.
  int fd() const { return inotify_.get(); }
  void drain();

 private:
  UniqueFd inotify_;
};

}  // namespace ddprun::launch
