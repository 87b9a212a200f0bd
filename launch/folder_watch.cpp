#include "launch/folder_watch.hpp"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>

namespace ddprun::launch {
namespace {

// The polling interval without inotify. Also the longest wait with inotify, in case a file system sends no events.
constexpr std::chrono::milliseconds kShortSleep{1};
constexpr std::chrono::milliseconds kLongestWait{50};

}  // namespace

FolderWatch::FolderWatch(const std::string& folder) : inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (inotify_ && ::inotify_add_watch(inotify_.get(), folder.c_str(), IN_CREATE | IN_MOVED_TO) < 0) inotify_.reset();
}

void FolderWatch::wait(std::chrono::milliseconds limit) {
  limit = std::min(limit, inotify_ ? kLongestWait : kShortSleep);
  pollfd entry{inotify_.get(), POLLIN, 0};  // poll() ignores a negative descriptor and only sleeps
  if (::poll(&entry, 1, static_cast<int>(limit.count())) > 0) drain();
}

void FolderWatch::drain() {
  char events[4096];
  while (inotify_ && ::read(inotify_.get(), events, sizeof events) > 0) {
  }
}

}  // namespace ddprun::launch
