// Ranks as processes: their sockets, where they listen, and what they notice when a host is cut off.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/plugin_backend.hpp"
#include "plugin/registry.hpp"
#include "plugins/tcp_addresses.hpp"
#include "support/text.hpp"
#include "support/variable.hpp"
#include "testing/hosts.hpp"

namespace ddprun::comm {
namespace {

using namespace std::chrono_literals;
using testing::As;
using testing::contains;
using testing::Hosts;
using testing::Rank;
using testing::Variable;

JoinOptions options_of(Rank& rank, const std::string& address) {
  JoinOptions options{.rank = rank.rank(), .size = rank.size(), .deadline = 60s, .address = address};
  options.allgather = [&rank](std::string_view mine) {
    std::string all(mine.size() * static_cast<std::size_t>(rank.size()), '\0');
    rank.allgather(mine.data(), mine.size(), all.data());
    std::vector<std::string> values;
    for (int peer = 0; peer < rank.size(); ++peer) values.push_back(all.substr(peer * mine.size(), mine.size()));
    return values;
  };
  return options;
}

std::unique_ptr<CommBackend> join_gloo(const JoinOptions& options) {
  return join(*plugin::Registry({}).comm(DDPRUN_GLOO).table, options);
}

void reduce(CommBackend& backend, std::size_t count) {
  std::vector<float> values(count, 1);
  backend.allreduce({.send = values.data(), .recv = values.data(), .count = count}).wait(60s);
  if (values.back() != static_cast<float>(backend.size())) throw std::runtime_error("wrong sum");
}

// Rank r is on host r / per_host, and shares all but the network with the ranks of the other hosts.
testing::Placement only_network_of(const Hosts& hosts, int per_host) {
  return {.in_rank = [&hosts, per_host](int rank) {
    const std::string target = hosts.prefix(rank / per_host, {}).at(1);  // "--target=PID"
    const int space = open(("/proc/" + target.substr(target.find('=') + 1) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) != 0) throw std::runtime_error("setns failed");
    close(space);
  }};
}

// The addresses of the connections of each rank; rank r is on host r / per_host and has that host's address.
std::vector<std::string> connected_by(const Hosts& hosts, int per_host,
                                      const std::map<std::string, std::string>& options,
                                      const testing::Placement& placement, std::chrono::seconds deadline = 60s) {
  const auto body = [&](Rank& rank) {
    const int host = rank.rank() / per_host;
    auto how = options_of(rank, hosts.count() == 1 ? "" : hosts.address(host));
    how.deadline = deadline;
    how.options = options;
    const auto backend = join_gloo(how);
    reduce(*backend, 1);
    rank.report(testing::tcp_addresses());
    rank.meet();
  };
  const auto outcomes = testing::run_ranks(hosts.count() * per_host, As::processes, 60s, body, placement);
  std::vector<std::string> said;
  for (const auto& outcome : outcomes) said.push_back(outcome.ok() ? outcome.records.at(0) : outcome.error);
  return said;
}

std::vector<std::string> connected_by(const Hosts& hosts, int per_host,
                                      const std::map<std::string, std::string>& options = {}) {
  return connected_by(hosts, per_host, options, hosts.placement(per_host));
}

// The smallest send buffer of this process's TCP connections, in bytes.
int least_send_buffer() {
  int least = std::numeric_limits<int>::max();
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename());
    sockaddr_storage peer = {};
    socklen_t length = sizeof peer;
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) != 0 || peer.ss_family != AF_INET)
      continue;
    int bytes = 0;
    length = sizeof bytes;
    if (getsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, &length) == 0) least = std::min(least, bytes);
  }
  return least;
}

// Gloo sets the send buffers by the messages that it has seen: see Mesh::send.
TEST_CASE("small messages do not leave send buffers that are too small for large ones") {
  int most = 0;
  std::ifstream("/proc/sys/net/core/wmem_max") >> most;
  // Two and a half chunks of at most 512 KiB, which are whole pages. Linux doubles the limit.
  const int expected = std::min(5 * 256 * 1024, 2 * most) / 20 * 19;
  const auto outcomes = testing::run_ranks(2, As::processes, 60s, [&](Rank& rank) {
    const auto backend = join_gloo(options_of(rank, ""));
    for (const std::size_t count : {1, 1'000, 16'384, 65'536, 1'000'000}) {
      reduce(*backend, count);
      const int least = least_send_buffer();
      if (least < expected) {
        throw std::runtime_error(std::to_string(least) + " bytes after " + std::to_string(count) + " elements");
      }
    }
  });
  CHECK(testing::failures(outcomes) == "");
}

using Addresses = std::vector<std::string>;

TEST_CASE("the ranks of a host with several interfaces connect by one of them only") {
  if (!Hosts::are_possible()) return;
  const Hosts hosts(2, 2);
  CHECK(connected_by(hosts, 2) == Addresses{"10.83.0.10", "10.83.0.10", "10.83.0.11", "10.83.0.11"});
  CHECK(connected_by(hosts, 1, {{"interface", "eth1"}}) == Addresses{"10.84.0.10", "10.84.0.11"});
  const Variable named("GLOO_SOCKET_IFNAME", "eth1");
  CHECK(connected_by(hosts, 1) == Addresses{"10.84.0.10", "10.84.0.11"});
  CHECK(connected_by(hosts, 1, {{"interface", "eth0"}}) == Addresses{"10.83.0.10", "10.83.0.11"});
  CHECK(connected_by(Hosts(1), 2) == Addresses(2, "127.0.0.1"));
}

TEST_CASE("ranks that share memory but no network connect by the interface between them, not by 127.0.0.1") {
  if (!Hosts::are_possible()) return;
  const Hosts hosts(2, 2);
  CHECK(connected_by(hosts, 1, {}, only_network_of(hosts, 1)) == Addresses{"10.83.0.10", "10.83.0.11"});
  const Variable named("GLOO_SOCKET_IFNAME", "eth1");
  CHECK(connected_by(hosts, 2, {}, only_network_of(hosts, 2)) ==
        Addresses{"10.84.0.10", "10.84.0.10", "10.84.0.11", "10.84.0.11"});
}

TEST_CASE("an interface that does not lead to the peer: the error names the address and the interface") {
  if (!Hosts::are_possible()) return;
  const Hosts hosts(2, 2);
  for (const int host : {0, 1}) {
    hosts.run(host, "ip link add docker0 up type bridge && ip address add 172.17.0.1/16 dev docker0");
  }
  for (const auto& [name, address] : {std::pair("docker0", "172.17.0.1"), {"lo", "127.0.0.1"}}) {
    const auto said = connected_by(hosts, 1, {{"interface", name}});
    for (const int rank : {0, 1}) {
      const std::string expected = "gloo: rank " + std::to_string(rank) + ": joining 2 ranks: invalid: rank " +
                                   std::to_string(1 - rank) + " is on another host and listens on " + address + " (" +
                                   name + "), which is an address of this host too; name an interface that leads to";
      CHECK_MESSAGE(said[static_cast<std::size_t>(rank)].starts_with(expected), said[static_cast<std::size_t>(rank)]);
    }
  }
  hosts.disconnect(1, 1);
  std::string all;
  for (const auto& text : connected_by(hosts, 1, {{"interface", "eth1"}}, hosts.placement(1), 3s)) all += text + "\n";
  CHECK_MESSAGE((contains(all,
                          "rank 0 could not be reached at 10.84.0.10 within 3000 ms; this rank listens on "
                          "10.84.0.11 (eth1); name an interface") ||
                 contains(all,
                          "rank 1 could not be reached at 10.84.0.11 within 3000 ms; this rank listens on "
                          "10.84.0.10 (eth1); name an interface")),
                all);
}

TEST_CASE("a host whose loopback interface is down: the error says that 127.0.0.1 is missing") {
  if (!Hosts::are_possible()) return;
  const Hosts hosts(1);
  hosts.run(0, "ip link set lo down");
  for (const auto& text : connected_by(hosts, 2)) {
    CHECK_MESSAGE(contains(text,
                           ": invalid: the ranks of one host connect at 127.0.0.1, which is missing: this host "
                           "has lo (down), eth0 (10.83.0.10); run `ip link set lo up`, or use shm or ucx"),
                  text);
  }
}

TEST_CASE("a variable that names an interface which is down ends joining in one line, on every host") {
  if (!Hosts::are_possible()) return;
  const Hosts hosts(2, 2);
  for (const int host : {0, 1}) hosts.run(host, "ip link set eth1 down");
  const Variable named("GLOO_SOCKET_IFNAME", "eth1");
  const auto said = connected_by(hosts, 1);
  CHECK(said[0] ==
        "gloo: rank 0: joining 2 ranks: invalid: GLOO_SOCKET_IFNAME = \"eth1\": this interface is down; this host has "
        "lo (127.0.0.1), eth0 (10.83.0.10), eth1 (down)");
  CHECK(said[1].starts_with("gloo: rank 1: joining 2 ranks: invalid: GLOO_SOCKET_IFNAME = \"eth1\": "));
}

TEST_CASE("a host that is cut off is noticed long before the deadline, on both sides, in a line that names its ranks") {
  if (!Hosts::are_possible()) return;
  enum class Cut { cable, device };
  for (const auto& [cut, count] : {std::pair(Cut::cable, std::size_t{1}), {Cut::device, std::size_t{4'000'000}}}) {
    CAPTURE(count);
    const Hosts hosts(2);
    const auto body = [&, cut = cut, count = count](Rank& rank) {
      const auto backend = join_gloo(options_of(rank, hosts.address(rank.rank() / 2)));
      reduce(*backend, count);
      rank.meet();
      const auto start = testing::Clock::now();
      try {
        for (int turn = 0;; ++turn) {
          if (turn == 3 && rank.rank() == 0) {
            cut == Cut::cable ? hosts.disconnect(1) : hosts.run(1, "ip link set eth0 down");
          }
          reduce(*backend, count);
        }
      } catch (const CommError& lost) {
        rank.report(lost.what());
      }
      if (testing::Clock::now() - start > 30s) throw std::runtime_error("noticed too late");
    };
    const auto outcomes = testing::run_ranks(4, As::processes, 120s, body, hosts.placement(2));
    CHECK(testing::failures(outcomes) == "");
    for (const auto& outcome : outcomes) {
      REQUIRE(outcome.records.size() == 1);
      const std::string peers = outcome.rank < 2 ? "2, 3" : "0, 1";
      CHECK_MESSAGE(
          contains(outcome.records[0], "peer lost: allreduce: lost ranks " + peers +
                                           ": their hosts do not answer; a host or the network to it is down"),
          outcome.records[0]);
    }
  }
}

TEST_CASE("a slow network and a rank that comes late end nothing") {
  if (!Hosts::are_possible()) return;
  const Hosts hosts(2);
  // 1 Mbit/s: a queue that is often full, so packets are late or lost. The sum takes longer than a silence may last.
  hosts.run(1, "tc qdisc add dev eth0 root tbf rate 1mbit burst 8kb latency 300ms");
  const auto body = [&](Rank& rank) {
    const auto backend = join_gloo(options_of(rank, hosts.address(rank.rank() / 2)));
    reduce(*backend, 100'000);
    if (rank.rank() == 3) std::this_thread::sleep_for(5s);
    reduce(*backend, 1'000);
  };
  CHECK(testing::failures(testing::run_ranks(4, As::processes, 120s, body, hosts.placement(2))) == "");
}

}  // namespace
}  // namespace ddprun::comm
