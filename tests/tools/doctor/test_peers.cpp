// The test between hosts, with real processes: over loopback, where processes pretend to be hosts, and between hosts
// out of namespaces.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <utility>  // Boost.Asio 1.74 needs it and does not include it

#include <boost/asio.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "ddprun/error.hpp"
#include "launch/rendezvous.hpp"
#include "support/error_of.hpp"
#include "support/process.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "testing/hosts.hpp"
#include "testing/temp_dir.hpp"
#include "tools/doctor/peers.hpp"

using namespace ddprun;
using namespace ddprun::doctor;
using namespace ddprun::testing;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Endpoint = boost::asio::ip::tcp::endpoint;

namespace {

PeersOptions quick(const std::string& host, const std::string& interface) {
  PeersOptions options;
  options.host = host;
  options.interface = interface;
  options.connect_limit = milliseconds(2000);
  options.timeout = seconds(30);
  return options;
}

// Runs the ranks on the given hosts over loopback. Rank 0 reports its JSON.
std::vector<Outcome> over_loopback(
    const std::vector<std::string>& hosts,
    const std::function<void(int, PeersOptions&)>& change = [](int, PeersOptions&) {}) {
  const TempDir folder;
  return run_ranks(static_cast<int>(hosts.size()), As::processes, seconds(100), [&](Rank& rank) {
    const auto store = launch::folder_store(folder.path());
    PeersOptions options = quick(hosts[static_cast<std::size_t>(rank.rank())], "lo");
    change(rank.rank(), options);
    const PeersReport report = test_peers(*store, rank.rank(), rank.size(), options);
    if (rank.rank() == 0) rank.report(peers_json(report, judge_peers(report)).dump());
  });
}

nlohmann::json result_of(const std::vector<Outcome>& outcomes) {
  CHECK(failures(outcomes) == "");
  REQUIRE(outcomes[0].records.size() == 1);
  return nlohmann::json::parse(outcomes[0].records[0]);
}

// One rank on each host, with process numbers that differ between hosts: the folder store names files by them.
Placement one_on_each(const Hosts& hosts) {
  Placement placement = hosts.placement(1);
  placement.before_fork = [enter = placement.before_fork](int rank) {
    enter(rank);
    for (int number = 0; number < rank; ++number) {
      const pid_t used = fork();
      if (used == 0) _exit(0);
      waitpid(used, nullptr, 0);
    }
  };
  return placement;
}

// The same between hosts out of namespaces, one rank each. `disturb` is a shell command for each host, or "".
nlohmann::json between_hosts(int size, const std::function<std::string(int)>& disturb) {
  const Hosts hosts(size);
  for (int host = 0; host < size; ++host) {
    if (const std::string command = disturb(host); !command.empty()) hosts.run(host, command);
  }
  const TempDir folder;
  const auto body = [&](Rank& rank) {
    const auto store = launch::folder_store(folder.path());
    const PeersReport report = test_peers(*store, rank.rank(), size, quick("", ""));
    if (rank.rank() == 0) rank.report(peers_json(report, judge_peers(report)).dump());
  };
  return result_of(run_ranks(size, As::processes, seconds(100), body, one_on_each(hosts)));
}

// A disturbance of one host.
std::function<std::string(int)> on(int host, const std::string& command) {
  return [=](int each) { return each == host ? command : std::string(); };
}

const nlohmann::json& pair_of(const nlohmann::json& result, std::size_t from, std::size_t to) {
  for (const auto& pair : result.at("pairs")) {
    if (pair.at("from") == from && pair.at("to") == to) return pair;
  }
  throw std::runtime_error("no such pair in " + result.dump());
}

// All findings that are not ok, as "state: name: value", one per line.
std::string problems(const nlohmann::json& result) {
  std::string text;
  for (const auto& one : result.at("findings")) {
    if (one.at("state") == "ok") continue;
    text += one.at("state").get<std::string>() + ": " + one.at("name").get<std::string>() + ": " +
            one.at("value").get<std::string>() + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("the rounds: every pair once, every host at most once a round") {
  for (std::size_t hosts = 0; hosts <= 17; ++hosts) {
    CAPTURE(hosts);
    std::map<std::pair<std::size_t, std::size_t>, int> met;
    for (std::size_t round = 0; round < hosts; ++round) {
      for (std::size_t host = 0; host < hosts; ++host) {
        const auto partner = partner_of(host, round, hosts);
        if (!partner) continue;
        REQUIRE(*partner != host);
        REQUIRE(partner_of(*partner, round, hosts) == host);
        ++met[{host, *partner}];
      }
    }
    CHECK(met.size() == (hosts < 2 ? 0 : hosts * (hosts - 1)));
    CHECK(std::all_of(met.begin(), met.end(), [](const auto& one) { return one.second == 1; }));
  }
}

TEST_CASE("three hosts, one with two ranks: every ordered pair is measured") {
  const auto result = result_of(over_loopback({"a", "b", "b", "c"}));
  REQUIRE(result.at("hosts").size() == 3);
  CHECK(result.at("hosts")[2].at("rank") == 3);
  CHECK(result.at("pairs").size() == 6);
  for (const auto& pair : result.at("pairs")) {
    CHECK(pair.at("connect_errno") == 0);
    CHECK(pair.at("error") == "");
    CHECK(pair.at("interface") == "lo");
    CHECK(pair.at("round_trip_s") > 0);
    CHECK(pair.at("loses_large") == false);
  }
}

TEST_CASE("one host alone is a note") {
  const auto result = result_of(over_loopback({"a", "a"}));
  CHECK(result.at("pairs").empty());
  CHECK(contains(problems(result), "note: hosts: all ranks are on "));
}

TEST_CASE("a host that cannot listen, or lacks the interface, is an error of that host alone") {
  const auto result = result_of(over_loopback({"a", "b", "c"}, [](int rank, PeersOptions& options) {
    if (rank == 1) options.interface = "nowhere0";
  }));
  CHECK(contains(problems(result), "--interface nowhere0: this host has no such interface"));
  CHECK(pair_of(result, 0, 2).at("round_trip_s") > 0);
  CHECK(contains(pair_of(result, 0, 1).at("error"), "nowhere0"));

  const PeerListener other("127.0.0.1", 0);
  const int port = other.port();
  const auto busy = result_of(over_loopback({"a", "b"}, [&](int rank, PeersOptions& options) {
    if (rank == 1) options.port = port;
  }));
  CHECK(contains(problems(busy), "port " + std::to_string(port) + ": Address already in use"));
}

TEST_CASE("a rank that does not come is named") {
  const TempDir folder;
  const auto store = launch::folder_store(folder.path());
  PeersOptions options = quick("a", "lo");
  options.timeout = milliseconds(50);
  CHECK(contains(error_of([&] { test_peers(*store, 0, 2, options); }), "these did not come: 1"));
}

TEST_CASE("a host that dies before its test is an error; the others test") {
  const TempDir folder;
  const auto result = result_of(run_ranks(3, As::processes, seconds(100), [&](Rank& rank) {
    const auto store = launch::folder_store(folder.path());
    PeersOptions options = quick("host " + std::to_string(rank.rank()), "lo");
    options.timeout = seconds(5);
    if (rank.rank() == 1) {
      store->allgather("peers/host", 1, 3, options.host, options.timeout);
      return;
    }
    const PeersReport report = test_peers(*store, rank.rank(), rank.size(), options);
    if (rank.rank() == 0) rank.report(peers_json(report, judge_peers(report)).dump());
  }));
  CHECK(contains(problems(result), "no address within "));
  CHECK(pair_of(result, 0, 2).at("round_trip_s") > 0);
  CHECK(pair_of(result, 2, 0).at("round_trip_s") > 0);
}

TEST_CASE("a listener serves only the client with the ticket, and dismisses silent, wrong and early ones") {
  const std::string ticket(32, '1'), other(32, '2');
  PeerHost to;
  to.address = "127.0.0.1";
  auto listener = std::make_unique<PeerListener>(to.address, 0);
  to.port = listener->port();
  const auto measured_with = [&](const std::string& presented, milliseconds limit) {
    std::thread server([&] { listener->serve(ticket, limit); });
    const PeerPair pair = measure(to, presented, quick("", ""));
    server.join();
    return pair;
  };
  CHECK(measured_with(ticket, seconds(5)).error.empty());
  const PeerPair refused = measured_with(other, milliseconds(200));
  CHECK(refused.connect_errno == 0);
  CHECK_FALSE(refused.error.empty());
  CHECK_FALSE(refused.round_trip_s);

  boost::asio::io_context context;
  const Endpoint at(boost::asio::ip::make_address(to.address), static_cast<uint16_t>(to.port));
  Endpoint::protocol_type::socket silent(context), garbage(context);
  silent.connect(at);
  garbage.connect(at);
  boost::asio::write(garbage, boost::asio::buffer(std::string("GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n")));
  CHECK(measured_with(ticket, seconds(5)).error.empty());

  // What follows the ticket may be garbage too: that client is served nothing, and the next one is.
  Endpoint::protocol_type::socket odd(context);
  odd.connect(at);
  boost::asio::write(odd, boost::asio::buffer(ticket + std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8)));
  odd.close();
  listener->serve(ticket, seconds(5));
  CHECK(measured_with(ticket, seconds(5)).error.empty());
  listener.reset();
  CHECK(measure(to, ticket, quick("", "")).connect_errno == ECONNREFUSED);
}

TEST_CASE("the interface: named, by variable, towards the master, by default route") {
  std::vector<Interface> list(4);
  const auto set = [&](std::size_t at, const char* name, const char* address, bool up) {
    list[at].name = name;
    list[at].addresses = {address};
    list[at].is_up = up;
  };
  set(0, "lo", "127.0.0.1", true);
  list[0].is_loopback = true;
  set(1, "eth0", "10.0.0.1", true);
  set(2, "eth1", "10.1.0.1", true);
  set(3, "eth2", "10.2.0.1", false);
  CHECK(choose_interface(list, "", {}, "").name == "eth0");
  CHECK(choose_interface(list, "", {}, "10.1.0.1").name == "eth1");
  CHECK(choose_interface(list, "", {}, "127.0.0.1").name == "eth0");
  CHECK(choose_interface(list, "", {{"NCCL_SOCKET_IFNAME", "=eth1,eth0"}}, "").name == "eth1");
  CHECK(choose_interface(list, "", {{"GLOO_SOCKET_IFNAME", "eth2"}}, "").name == "eth0");
  CHECK(choose_interface(list, "lo", {{"GLOO_SOCKET_IFNAME", "eth1"}}, "").name == "lo");
  list[2].default_route = true;
  CHECK(choose_interface(list, "", {}, "").name == "eth1");
  CHECK(contains(error_of([&] { choose_interface(list, "eth2", {}, ""); }), "2: --interface eth2: "));
  CHECK(contains(error_of([&] { choose_interface({}, "", {}, ""); }), "no interface but loopback"));
}

TEST_CASE("between hosts: names and addresses") {
  if (!Hosts::are_possible()) return;
  const auto result = between_hosts(3, [](int) { return ""; });
  CHECK(result.at("hosts").size() == 3);
  REQUIRE(result.at("pairs").size() == 6);
  const auto& pair = pair_of(result, 2, 0);
  CHECK(pair.at("interface") == "eth0");
  CHECK(pair.at("address") == "10.83.0.12");
  CHECK(pair.at("round_trip_s") > 0);
  CHECK_FALSE(contains(problems(result), "error"));
}

TEST_CASE("between hosts: one that cannot be reached, and one without a network") {
  if (!Hosts::are_possible()) return;
  // Packets to rank 1 are refused on rank 0, in one direction only: the other's SYN-ACK has another rule.
  const auto prohibited = between_hosts(2, on(0, "ip route add prohibit 10.83.0.11"));
  CHECK(pair_of(prohibited, 0, 1).at("connect_errno") == EACCES);
  CHECK(contains(problems(prohibited), "cannot connect to 10.83.0.11"));

  const auto down = between_hosts(3, on(1, "ip link set eth0 down"));
  CHECK(contains(problems(down), "no interface but loopback is up with an address"));
  CHECK(pair_of(down, 0, 2).at("round_trip_s") > 0);
}

TEST_CASE("between hosts: MTUs that differ") {
  if (!Hosts::are_possible()) return;
  const auto mtu = between_hosts(2, on(1, "ip link set eth0 mtu 1400"));
  CHECK(contains(problems(mtu), "warning: MTU: "));
}

TEST_CASE("between hosts: large packets are lost on the way") {
  if (!Hosts::are_possible()) return;
  // Both hosts believe in 4000 bytes, and the bridge's ports forward 1500.
  const auto lost = between_hosts(2, [](int) { return "ip link set eth0 mtu 4000 gso_max_segs 1"; });
  CHECK(contains(problems(lost), "small messages arrive, large ones do not"));
}

constexpr int kAgentPort = 29400;

// Runs `ddprun doctor --peers` on each of two hosts, with these arguments and variables. Both must end with `code`, and
// only the first prints the table. Returns its output.
std::string doctor_on_both(const Hosts& hosts, const std::function<std::string(int)>& arguments,
                           const std::function<std::string(int)>& variables, const std::string& code = "0") {
  const TempDir folder;
  const std::string place = folder.path().string();
  const auto body = [&](Rank& rank) {
    const std::string number = std::to_string(rank.rank());
    std::unique_ptr<PeerListener> agent;  // of torchrun, on the first host
    if (rank.rank() == 0) agent = std::make_unique<PeerListener>(hosts.address(0), kAgentPort);
    const std::string command = variables(rank.rank()) + " timeout 60 " + DOCTOR_PROGRAM +
                                " --peers --timeout 20 " + arguments(rank.rank()) + " >" + place +
                                "/out." + number + " 2>&1";
    rank.report(std::to_string(WEXITSTATUS(std::system(command.c_str()))));
  };
  const auto outcomes = run_ranks(2, As::processes, seconds(100), body, hosts.placement(1));
  REQUIRE(failures(outcomes) == "");
  const std::string out = read_file(place + "/out.0"), other = read_file(place + "/out.1");
  CHECK_MESSAGE(outcomes[0].records == std::vector<std::string>{code}, out);
  CHECK_MESSAGE(outcomes[1].records == std::vector<std::string>{code}, other);
  CHECK_FALSE(contains(other, "round trip"));
  return out;
}

constexpr const char* kSecret = "DDPRUN_SECRET=00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

TEST_CASE("ddprun doctor --peers as the ranks of a launcher: rank 0 prints the table, and writes the file") {
  if (!Hosts::are_possible()) return;
  const Hosts hosts(2);
  const TempDir folder;
  const std::string json = folder.path().string() + "/json";
  const auto variables = [&](int host) {
    return std::string(kSecret) + " RANK=" + std::to_string(host) +
           " WORLD_SIZE=2 MASTER_PORT=29500 MASTER_ADDR=" + hosts.address(0);
  };
  const std::string table = doctor_on_both(
      hosts, [&](int) { return "--json " + json; }, variables);
  CHECK(contains(table, "10.83.0.11"));
  CHECK(contains(table, "0 errors"));
  CHECK(nlohmann::json::parse(read_file(json)).at("pairs").size() == 2);
}

TEST_CASE("ddprun doctor --peers under torchrun, whose agent has the port MASTER_PORT") {
  if (!Hosts::are_possible()) return;
  const Hosts hosts(2);
  const auto variables = [&](int host) {
    return std::string(kSecret) + " RANK=" + std::to_string(host) + " WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1" +
           " TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_USE_AGENT_STORE=True MASTER_PORT=" +
           std::to_string(kAgentPort) + " MASTER_ADDR=" + hosts.address(0);
  };
  CHECK(contains(doctor_on_both(
                     hosts, [](int) { return ""; }, variables),
                 "0 errors"));
}

TEST_CASE("ddprun doctor --peers with --nnodes starts its ranks itself; an error is exit code 1 on all hosts") {
  if (!Hosts::are_possible()) return;
  const Hosts hosts(2);
  const auto nodes = [&](int host) {
    return "--nnodes 2 --master-addr " + hosts.address(0) + " --node-rank " + std::to_string(host);
  };
  const auto secret = [](int) { return std::string(kSecret); };
  const std::string table = doctor_on_both(hosts, nodes, secret);
  CHECK(contains(table, "10.83.0.11"));
  CHECK(contains(table, "0 errors"));

  const auto named = [&](int host) { return nodes(host) + (host == 1 ? " --interface nowhere0" : ""); };
  CHECK(contains(doctor_on_both(hosts, named, secret, "1"), "--interface nowhere0: this host has no such interface"));
}

TEST_CASE("ddprun doctor --peers between hosts needs a secret, and more than one rank") {
  const auto refused = [](const std::vector<std::string>& more, const std::string& text) {
    std::vector<std::string> command{DOCTOR_PROGRAM, "--peers"};
    command.insert(command.end(), more.begin(), more.end());
    const auto result = Process(command, {}).wait();
    CHECK(result.code != 0);
    CHECK_MESSAGE(contains(result.err, text), result.err);
  };
  refused({}, "give --nnodes on each host, or start it with a launcher");
  refused({"--nproc-per-node", "1"}, "give --nnodes on each host, or start it with a launcher");
  refused({"--nnodes", "2", "--node-rank", "0", "--master-addr", "192.0.2.1"}, "the job has no secret");
}
