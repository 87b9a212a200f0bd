#include "host/silence.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "ddprun/plugin/network_interface.hpp"

namespace ddprun::host {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSilent(2'500), kPollInterval(100);
constexpr int kProbes = 2;

// "": no TCP connection.
std::string peer_address(int socket) {
  sockaddr_storage peer = {};
  socklen_t size = sizeof peer;
  int protocol = 0;
  socklen_t length = sizeof protocol;
  if (getsockopt(socket, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) != 0 || protocol != IPPROTO_TCP) return "";
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return "";
  return numeric_address(reinterpret_cast<const sockaddr*>(&peer));
}

// The time since the peer's kernel last answered; 0 if this kernel has since then sent fewer than `probes` packets
// that ask for an answer: keep-alive probes, or data again.
milliseconds silence_of(int socket, int probes) {
  tcp_info info = {};
  socklen_t size = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return milliseconds(0);
  if (info.tcpi_probes + info.tcpi_retransmits < probes) return milliseconds(0);
  return milliseconds(std::min(info.tcpi_last_ack_recv, info.tcpi_last_data_recv));
}

std::string own_addresses() {
  std::string text;
  for (const auto& one : network_interfaces()) {
    if (one.is_loopback) continue;
    for (const auto& address : one.addresses) text += address.substr(0, address.find('%')) + " ";
  }
  return text;
}

}  // namespace

void enable_keepalive(int socket) noexcept {
  int is_enabled = 0;
  socklen_t size = sizeof is_enabled;
  if (getsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &is_enabled, &size) == 0 && is_enabled != 0) return;
  const auto set = [socket](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 10);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
}

Silence::Silence(const Host& host, const std::vector<Process>& processes) {
  const auto leaders = leaders_of(processes);
  if (leaders.size() == 1) return;
  for (const auto& process : processes) {
    const auto leads = [&](int leader) { return share_host(processes[static_cast<std::size_t>(leader)], process); };
    const auto leader = std::find_if(leaders.begin(), leaders.end(), leads);
    leader_of_.push_back(leader != leaders.end() ? *leader : static_cast<int>(leader_of_.size()));
  }
  std::map<std::string, std::set<int>> hosts_with;
  const auto texts = host.allgather(own_addresses());
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    std::istringstream words(texts[rank]);
    addresses_.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
    for (const auto& address : addresses_.back()) hosts_with[address].insert(leader_of_[rank]);
  }
  for (auto& mine : addresses_) {
    std::erase_if(mine, [&](const std::string& address) { return hosts_with[address].size() > 1; });
  }
  for (std::size_t rank = 0; rank < addresses_.size(); ++rank) {
    if (leader_of_[rank] == leader_of_[static_cast<std::size_t>(host.rank())]) addresses_[rank].clear();
  }
}

int Silence::leader_at(const std::string& address) const {
  for (std::size_t rank = 0; rank < addresses_.size(); ++rank) {
    if (std::ranges::count(addresses_[rank], address) > 0) return leader_of_[rank];
  }
  return -1;
}

void Silence::find_connections() {
  connections_.clear();
  if (addresses_.empty()) return;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int socket = std::atoi(entry.path().filename().c_str());
    const std::string peer = peer_address(socket);
    const std::string address = peer.substr(0, peer.find('%'));
    if (const int leader = leader_at(address); !address.empty() && leader >= 0) {
      enable_keepalive(socket);
      connections_.push_back({socket, peer, leader});
    }
  }
}

const std::vector<int>& Silence::ranks() {
  if (connections_.empty() || !silent_.empty() || Clock::now() < next_poll_) return silent_;
  next_poll_ = Clock::now() + kPollInterval;
  silent_ = silent_for(kSilent, kProbes);
  return silent_;
}

std::vector<int> Silence::silent_for(std::chrono::milliseconds time, int probes) const {
  std::map<int, milliseconds> silences;  // by the host's leader: the shortest of its connections
  for (const auto& connection : connections_) {
    if (peer_address(connection.socket) != connection.address) continue;  // closed meanwhile
    const auto silence = silence_of(connection.socket, probes);
    const auto [entry, is_new] = silences.emplace(connection.leader, silence);
    if (!is_new) entry->second = std::min(entry->second, silence);
  }
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < leader_of_.size(); ++rank) {
    const auto found = silences.find(leader_of_[rank]);
    if (found != silences.end() && found->second >= time) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::string Silence::text(const std::vector<int>& ranks) {
  std::string names;
  for (const int rank : ranks) names += (names.empty() ? "" : ", ") + std::to_string(rank);
  return (ranks.size() == 1 ? "lost rank " + names + ": its host does" : "lost ranks " + names + ": their hosts do") +
         " not answer; a host or the network to it is down";
}

}  // namespace ddprun::host
