#include "host/liveness.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "ddprun/plugin/host_identity.hpp"

namespace ddprun::host {
Place place_of_this_process() {
  const int64_t pid = getpid();
  return {host_identity(), pid, start_time(static_cast<pid_t>(pid)), network_identity()};
}

std::vector<Place> places_of(const Host& host) {
  const Place mine = place_of_this_process();
  std::vector<Place> places;
  const std::string own =
      std::to_string(mine.pid) + " " + std::to_string(mine.started) + "\n" + mine.host + "\n" + mine.network;
  for (const auto& text : host.allgather(own)) {
    std::istringstream fields(text);
    Place& place = places.emplace_back();
    fields >> place.pid >> place.started;
    fields.ignore();
    std::getline(fields, place.host) && std::getline(fields, place.network);
  }
  return places;
}

bool share_host(const Place& a, const Place& b) {
  return !a.host.empty() && a.host == b.host;
}

bool share_network(const Place& a, const Place& b) {
  return !a.network.empty() && a.network == b.network;
}

std::vector<int> leaders_of(const std::vector<Place>& places) {
  std::vector<int> leaders;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const auto leads = [&](int leader) { return share_host(places[static_cast<std::size_t>(leader)], places[rank]); };
    if (std::none_of(leaders.begin(), leaders.end(), leads)) leaders.push_back(static_cast<int>(rank));
  }
  return leaders;
}

Liveness::Liveness(const std::vector<Place>& places, int self) : processes_(places.size()) {
  const Place& mine = places[static_cast<std::size_t>(self)];
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const Place& theirs = places[rank];
    if (!share_host(mine, theirs) || theirs.pid == mine.pid) continue;
    processes_[rank] = ProcessWatch(static_cast<pid_t>(theirs.pid), theirs.started);
    if (const int error = processes_[rank].error(); error != 0) {
      throw CommError(CommStatus::internal, "rank " + std::to_string(rank) +
                                                " cannot be watched: pidfd_open: " + std::strerror(error) +
                                                (error == ENOSYS ? " (this needs Linux 5.3 or later)" : ""));
    }
  }
}

bool Liveness::watches_any() const noexcept {
  return std::any_of(processes_.begin(), processes_.end(), [](const ProcessWatch& watch) { return watch.pid() != 0; });
}

bool Liveness::has_ended(int rank) const noexcept {
  return processes_[static_cast<std::size_t>(rank)].has_ended();
}

int Liveness::first_ended() const noexcept {
  for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
    if (processes_[rank].has_ended()) return static_cast<int>(rank);
  }
  return -1;
}

}  // namespace ddprun::host
