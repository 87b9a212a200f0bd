#include "launch/net/node_link.hpp"

#include <doctest/doctest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>

#include "ddprun/error.hpp"
#include "launch/net/connection.hpp"
#include "launch/net/store_server.hpp"
#include "launch/peers.hpp"
#include "launch/relay.hpp"
#include "launch/text.hpp"
#include "support/error_of.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::launch;
using namespace ddprun::launch::testing;
using ddprun::testing::error_of;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLimit{20000};

struct Nodes {
  const Secret secret = make_secret();
  std::unique_ptr<StoreServer> server = std::make_unique<StoreServer>(std::vector<std::string>{"127.0.0.1"}, 0, secret);
  const StoreAddress address{"127.0.0.1", server->port(), secret};

  std::unique_ptr<NodeLink> join(int node, int nodes, milliseconds timeout = kLimit) const {
    return std::make_unique<NodeLink>(address, node, nodes, "info of " + std::to_string(node), timeout);
  }

  std::vector<std::unique_ptr<NodeLink>> join_all(int nodes) const {
    std::vector<std::unique_ptr<NodeLink>> links(static_cast<std::size_t>(nodes));
    std::vector<std::thread> threads;
    for (int node = 0; node < nodes; ++node) {
      threads.emplace_back([&, node] { links[static_cast<std::size_t>(node)] = join(node, nodes); });
    }
    for (std::thread& thread : threads) thread.join();
    return links;
  }
};

// The next events of a node, while the other nodes stay alive.
std::vector<NodeEvent> next_events(NodeLink& link, const std::vector<NodeLink*>& others) {
  const auto deadline = Clock::now() + kLimit;
  while (Clock::now() < deadline) {
    for (NodeLink* other : others) other->keep_alive();
    link.keep_alive();
    if (auto events = link.events(); !events.empty()) return events;
    pollfd entry{link.fd(), POLLIN, 0};
    ::poll(&entry, 1, 20);
  }
  return {};
}

TEST_CASE("nodes meet, and each learns what the others are") {
  const Nodes nodes;
  const auto links = nodes.join_all(3);
  for (const auto& link : links) {
    REQUIRE(link->infos().size() == 3);
    CHECK(link->infos()[2] == "info of 2");
    CHECK(link->starts() == 0);
  }
}

TEST_CASE("nodes that do not come are named") {
  const Nodes nodes;
  const std::string error = error_of([&] { nodes.join(1, 4, milliseconds(200)); });
  CHECK(contains(error, "4: "));
  CHECK(contains(error, "--node-rank did not come: 0, 2, 3"));
}

TEST_CASE("a second node of the same rank, and one with another number of nodes, are refused") {
  const Nodes nodes;
  const auto links = nodes.join_all(2);
  std::atomic<bool> done{false};
  std::thread alive([&] {
    while (!done) {
      for (const auto& link : links) link->keep_alive();
      std::this_thread::sleep_for(milliseconds(100));
    }
  });
  const std::string twice = error_of([&] { nodes.join(1, 2); }), size = error_of([&] { nodes.join(2, 3); });
  done = true;
  alive.join();
  CHECK(contains(twice, "two nodes have --node-rank 1, at 127.0.0.1"));
  CHECK(contains(size, "--nnodes 3, and the first has 2"));
}

TEST_CASE("a node of another version of ddprun is refused in one line that names it") {
  const Nodes nodes;
  std::unique_ptr<NodeLink> other;
  std::thread joining([&] { other = nodes.join(1, 2); });
  const std::string error = error_of([&] { Peers(nodes.address, 0, 2, NodeInfo{"host", 1, 0}, kLimit); });
  joining.join();
  CHECK(error == "4: node 1 runs another version of ddprun: install the same one on all hosts");
}

TEST_CASE("all nodes receive all texts in the same order") {
  const Nodes nodes;
  const auto links = nodes.join_all(2);
  links[0]->publish("from 0");
  const auto first = next_events(*links[1], {links[0].get()});
  REQUIRE(first.size() == 1);
  CHECK(first[0].text == "from 0");
  CHECK(first[0].node == 0);
  links[1]->publish("from 1");
  std::string order;
  while (order.size() < 12) {
    for (const NodeEvent& event : next_events(*links[0], {links[1].get()})) order += event.text;
  }
  CHECK(order == "from 0from 1");
}

TEST_CASE("a node whose connection ends is lost for the others, and their waiting ranks end") {
  const Nodes nodes;
  auto links = nodes.join_all(3);
  const auto store = net_store(nodes.address, kLimit);
  std::string reason;
  std::thread waiting([&] { reason = error_of([&] { store->get("key", kLimit); }); });
  std::this_thread::sleep_for(milliseconds(50));
  links[1].reset();
  for (const int other : {0, 2}) {
    const auto events = next_events(*links[static_cast<std::size_t>(other)], {links[0].get(), links[2].get()});
    REQUIRE(events.size() == 1);
    CHECK(events[0].lost);
    CHECK(events[0].node == 1);
  }
  waiting.join();
  CHECK(contains(reason, "lost 127.0.0.1"));
}

TEST_CASE("a silent node is lost, though its connection is open") {
  const Nodes nodes;
  const auto links = nodes.join_all(2);
  const auto begin = Clock::now();
  const auto events = next_events(*links[0], {});
  REQUIRE(events.size() == 1);
  CHECK(events[0].lost);
  CHECK(events[0].node == 1);
  MESSAGE("a silent node was lost after ", std::chrono::duration_cast<milliseconds>(Clock::now() - begin).count(),
          " ms");
}

TEST_CASE("if messages pass in one direction only, both sides lose the other one at the same time") {
  for (const bool to_server : {true, false}) {
    CAPTURE(to_server);
    const Nodes nodes;
    Relay relay(nodes.address.port);
    const StoreAddress through_relay{"127.0.0.1", relay.port, nodes.secret};
    std::unique_ptr<NodeLink> first, second;
    std::thread joining([&] { first = nodes.join(0, 2); });
    second = std::make_unique<NodeLink>(through_relay, 1, 2, "", kLimit);
    joining.join();
    (to_server ? relay.stop_to_server : relay.stop_to_client) = true;
    const auto cut = Clock::now();
    std::array<milliseconds, 2> noticed{};
    const auto watch = [&](NodeLink& link, int lost) {
      const auto events = next_events(link, {});
      REQUIRE(events.size() == 1);
      CHECK(events[0].lost);
      CHECK(events[0].node == lost);
      noticed[static_cast<std::size_t>(lost)] = std::chrono::duration_cast<milliseconds>(Clock::now() - cut);
    };
    std::thread watching([&] { watch(*first, 1); });
    watch(*second, 0);
    watching.join();
    MESSAGE("noticed after ", noticed[1].count(), " and ", noticed[0].count(), " ms");
    // The server alone would wait for another Hub::kSilence.
    CHECK(std::max(noticed[0], noticed[1]) - std::min(noticed[0], noticed[1]) < milliseconds(1500));
  }
}

TEST_CASE("a node that leaves in order is not lost") {
  const Nodes nodes;
  const auto links = nodes.join_all(2);
  links[1]->leave();
  links[0]->publish("still here");
  const auto events = next_events(*links[0], {});
  REQUIRE(events.size() == 1);
  CHECK(events[0].text == "still here");
}

TEST_CASE("the end of the server is the loss of node 0") {
  Nodes nodes;
  const auto links = nodes.join_all(2);
  nodes.server.reset();
  const auto events = next_events(*links[1], {});
  REQUIRE(events.size() == 1);
  CHECK(events[0].lost);
  CHECK(events[0].node == 0);
}

TEST_CASE("after a failure the nodes meet again, without the old keys") {
  const Nodes nodes;
  auto links = nodes.join_all(2);
  net_store(nodes.address, kLimit)->set("key", "of the first start");
  links.clear();
  const auto again = nodes.join_all(2);
  CHECK(again[0]->starts() == 1);
  CHECK(contains(error_of([&] { net_store(nodes.address, kLimit)->get("key", milliseconds(0)); }), "nobody set"));
}

}  // namespace
