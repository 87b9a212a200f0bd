// Ranks that look like separate hosts to the kernel: each in its own network, IPC and mount namespaces, connected by a
// bridge. Nothing is visible outside, and everything ends with the ranks.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/conformance/ranks.hpp"

namespace ddprun::testing {

// The network device of a rank.
inline constexpr char kNetworkDevice[] = "ddprun";

namespace detail {

inline void run_command(const std::string& command) {
  if (std::system((command + " 2>&1").c_str()) != 0) throw std::runtime_error("failed: " + command);
}

// The bridge is in rank 0's namespace; a pair of virtual Ethernet devices leads from it to each rank, including rank 0,
// because UCX does not use a bridge itself.
inline void join_networks(const std::vector<pid_t>& pids) {
  run_command("ip link add bridge type bridge");
  run_command("ip link set bridge up");
  for (std::size_t rank = 0; rank < pids.size(); ++rank) {
    const std::string port = "port" + std::to_string(rank);
    run_command("ip link add " + port + " type veth peer name " + kNetworkDevice + " netns " +
                std::to_string(pids[rank]));
    run_command("ip link set " + port + " master bridge up");
  }
}

}  // namespace detail

// Call it on the thread that will communicate, in a process with no other thread; needs CAP_SYS_ADMIN and iproute2's
// `ip`. Throws std::runtime_error.
inline void move_to_network(Rank& rank) {
  if (unshare(CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS) != 0) throw std::runtime_error("unshare failed");
  // /sys shows the devices of the network namespace in which it was mounted.
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("sysfs", "/sys", "sysfs", 0, nullptr) != 0) {
    throw std::runtime_error("mount failed");
  }
  std::vector<pid_t> pids(static_cast<std::size_t>(rank.size()));
  const pid_t mine = getpid();
  rank.allgather(&mine, sizeof mine, pids.data());
  if (rank.rank() == 0) detail::join_networks(pids);
  rank.meet();
  const std::string device = kNetworkDevice;
  detail::run_command("ip address add 10.83.0." + std::to_string(10 + rank.rank()) + "/24 dev " + device);
  detail::run_command("ip link set " + device + " up");
  rank.meet();
  detail::run_command("timeout 60 sh -c 'until grep -q up /sys/class/net/" + device +
                      "/operstate; do sleep 0.01; done'");
  rank.meet();
}

// Why namespaces do not work here, or "".
inline std::string why_no_networks() {
  const auto outcomes =
      run_ranks(2, As::processes, std::chrono::seconds(60), [](Rank& rank) { move_to_network(rank); });
  for (const Outcome& outcome : outcomes) {
    if (!outcome.ok()) return "no network namespaces (CAP_SYS_ADMIN, and `ip` of iproute2): " + outcome.describe();
  }
  return "";
}

}  // namespace ddprun::testing
