#include "host/liveness.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "ddprun/plugin/host.hpp"

namespace ddprun::host {
Process this_process() {
  const int64_t pid = getpid();
  return {host_identity(), pid, start_time(static_cast<pid_t>(pid)), network_identity()};
}

std::vector<Process> processes_of(const Host& host) {
  const Process mine = this_process();
  std::vector<Process> processes;
  const std::string own =
      std::to_string(mine.pid) + " " + std::to_string(mine.started) + "\n" + mine.host + "\n" + mine.network;
  for (const auto& text : host.allgather(own)) {
    std::istringstream fields(text);
    Process& process = processes.emplace_back();
    fields >> process.pid >> process.started;
    fields.ignore();
    std::getline(fields, process.host) && std::getline(fields, process.network);
  }
  return processes;
}

bool share_host(const Process& a, const Process& b) {
  return !a.host.empty() && a.host == b.host;
}

bool share_network(const Process& a, const Process& b) {
  return !a.network.empty() && a.network == b.network;
}

std::vector<int> leaders_of(const std::vector<Process>& processes) {
  std::vector<int> leaders;
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    const Process& own = processes[rank];
    const auto leads = [&](int leader) { return share_host(processes[static_cast<std::size_t>(leader)], own); };
    if (std::none_of(leaders.begin(), leaders.end(), leads)) leaders.push_back(static_cast<int>(rank));
  }
  return leaders;
}

Liveness::Liveness(const std::vector<Process>& processes, int self) : watches_(processes.size()) {
  const Process& mine = processes[static_cast<std::size_t>(self)];
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    const Process& theirs = processes[rank];
    if (!share_host(mine, theirs) || theirs.pid == mine.pid) continue;
    watches_[rank] = ProcessWatch(static_cast<pid_t>(theirs.pid), theirs.started);
    if (const int error = watches_[rank].error(); error != 0) {
      throw CommError(CommStatus::internal, "rank " + std::to_string(rank) +
                                                " cannot be watched: pidfd_open: " + std::strerror(error) +
                                                (error == ENOSYS ? " (this needs Linux 5.3 or later)" : ""));
    }
  }
}

bool Liveness::watches_any() const noexcept {
  return std::any_of(watches_.begin(), watches_.end(), [](const ProcessWatch& watch) { return watch.pid() != 0; });
}

bool Liveness::has_ended(int rank) const noexcept {
  return watches_[static_cast<std::size_t>(rank)].has_ended();
}

int Liveness::first_ended() const noexcept {
  const auto ended = std::ranges::find_if(watches_, &ProcessWatch::has_ended);
  return ended == watches_.end() ? -1 : static_cast<int>(ended - watches_.begin());
}

}  // namespace ddprun::host
