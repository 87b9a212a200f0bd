// Tests the network between the hosts of a job: for every ordered pair of hosts a TCP connection and its latency. The
// first rank of each host tests; the others wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/store.hpp"
#include "base/unique_fd.hpp"
#include "tools/doctor/facts.hpp"
#include "tools/doctor/rules.hpp"

namespace ddprun::doctor {

struct PeersOptions {
  std::string interface;  // whose address this host uses; "": as choose_interface()
  int port = 0;           // to listen on; 0: any free one
  std::string address;    // of this host, by which the others reach it; "": not known
  // Processes with the same text count as one host; "": processes in one network namespace do.
  std::string host;
  std::chrono::milliseconds connect_limit{3000};
  std::chrono::milliseconds timeout{60'000};  // until all ranks have come
};

struct PeerHost {
  int rank = 0;      // the one that tests
  std::string name;  // hostname
  std::string interface, address;
  int64_t mtu = 0;
  int port = 0;
  std::string version;  // of ddprun
  std::string error;    // why it did not test, otherwise ""
};

// The results of a connection from one host to another.
struct PeerPair {
  std::size_t from = 0, to = 0;        // indices of hosts
  int connect_errno = 0;               // 0: connected
  std::string error;                   // why the test ended after the connection, otherwise ""
  std::string interface, address;      // of the connecting end, as the kernel chose
  std::optional<double> round_trip_s;  // median
  bool loses_large = false;            // small messages arrive, large ones do not
};

struct PeersReport {
  std::vector<PeerHost> hosts;  // in the order of their first ranks
  std::vector<PeerPair> pairs;
};

// Collective. Returns the report on rank 0; on other ranks it is incomplete.
// Listens on one address of one interface; only peers with the job's random token are served. Takes about a second
// per other host. What fails on a host is in the report. Throws Error(rendezvous) if ranks do not come, and as the
// store does.
PeersReport test_peers(Store& store, int rank, int size, const PeersOptions& options);

// Whom a host tests with: in each round at most one other host, and in as many rounds as there are hosts every other
// host once. Nothing if the host pauses in this round.
std::optional<std::size_t> partner_of(std::size_t host, std::size_t round, std::size_t hosts);

// Which interface leads to other hosts: `named`, or else a variable of Gloo or NCCL, `address`, the default
// route, or the first that is up. Throws Error if `named` is not up or has no address, or if there is none but
// loopback.
Interface choose_interface(const std::vector<Interface>& interfaces, const std::string& named,
                           const Variables& variables, const std::string& address);

// Pure. One finding for each host, and one for each problem.
std::vector<Finding> judge_peers(const PeersReport& report);

// A row per ordered pair of hosts; "" without pairs.
std::string peers_text(const PeersReport& report);
// {"hosts": [...], "pairs": [...], "findings": [...]}; pairs count hosts from 0; what was not measured is null.
nlohmann::ordered_json peers_json(const PeersReport& report, const std::vector<Finding>& findings);

// The end of a connection that serves. The two ends agree on a ticket before, which only they know.
class PeerListener {
 public:
  // Listens on this address only; `port` 0: any free one. Throws Error(failure) with errno's text.
  PeerListener(const std::string& address, int port);

  int port() const;
  // Serves the client that has the ticket until it has measured; returns without having served if none has come within
  // `limit`. Others that connect are dismissed: after a second, if they send nothing.
  void serve(const std::string& ticket, std::chrono::milliseconds limit);

 private:
  UniqueFd socket_;
};

// Measures the connection to a host that serves. Blocks until its time limits (options.connect_limit)
// have passed. Errors are in the result, whose `from`, `to` and `interface` stay empty.
PeerPair measure(const PeerHost& to, const std::string& ticket, const PeersOptions& options);

}  // namespace ddprun::doctor
