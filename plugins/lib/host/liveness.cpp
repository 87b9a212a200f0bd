#include "host/liveness.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "host/identity.hpp"

namespace ddprun::host {
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
  return {identity(), pid, start_time(pid)};
}

std::vector<Place> places_of(const Host& host) {
  const Place mine = place_of_this_process();
  std::vector<Place> places;
  for (const auto& text :
       host.allgather(std::to_string(mine.pid) + " " + std::to_string(mine.started) + " " + mine.host)) {
    std::istringstream fields(text);
    Place& place = places.emplace_back();
    fields >> place.pid >> place.started >> std::ws;
    std::getline(fields, place.host);
  }
  return places;
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
      throw CommError(CommStatus::internal, "rank " + std::to_string(rank) + " cannot be watched: pidfd_open: " +
                                         std::strerror(errno) + " (this needs Linux 5.3 or later)");
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

int Liveness::first_ended() const noexcept {
  for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
    if (has_ended(static_cast<int>(rank))) return static_cast<int>(rank);
  }
  return -1;
}

}  // namespace ddprun::host
