#include "liveness.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "ddprun/comm_plugin.hpp"
#include "host_group.hpp"

namespace ddprun::ucx_backend {
namespace {

// 0 if there is no such process.
uint64_t start_time(int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  // The second field, the program's name in brackets, may hold anything; the 22nd is the time.
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  uint64_t started = 0;
  fields >> started;
  return started;
}

}  // namespace

Place place_of_this_process() {
  const int64_t pid = getpid();
  return {host_identity(), pid, start_time(pid)};
}

bool share_host(const Place& a, const Place& b) {
  return !a.host.empty() && a.host == b.host;
}

Liveness::Liveness(const std::vector<Place>& places, int self) : processes_(places.size(), kNotWatched) {
  const Place& mine = places[static_cast<std::size_t>(self)];
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const Place& theirs = places[rank];
    if (!share_host(mine, theirs) || theirs.pid == mine.pid) continue;
    const auto process = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(theirs.pid), 0));
    if (process < 0 && errno != ESRCH) {
      throw Failure(DDPRUN_INTERNAL, "rank " + std::to_string(rank) + " cannot be watched: pidfd_open: " +
                                         std::strerror(errno) + " (comm_ucx needs Linux 5.3 or later)");
    }
    processes_[rank] = process < 0 ? kEndedBefore : process;
    // The number may have been given to another process meanwhile.
    if (process >= 0 && start_time(theirs.pid) != theirs.started) {
      close(process);
      processes_[rank] = kEndedBefore;
    }
  }
}

Liveness::~Liveness() {
  for (const int process : processes_) {
    if (process >= 0) close(process);
  }
}

bool Liveness::has_ended(int rank) const noexcept {
  const int process = processes_[static_cast<std::size_t>(rank)];
  if (process < 0) return process == kEndedBefore;
  pollfd ended = {process, POLLIN, 0};
  return poll(&ended, 1, 0) > 0;
}

}  // namespace ddprun::ucx_backend
