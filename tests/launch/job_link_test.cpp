#include "launch/job_link.hpp"

#include <doctest/doctest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "ddprun/error.hpp"
#include "launch/net/connection.hpp"
#include "launch/net/net_store.hpp"
#include "launch/relay.hpp"
#include "support/error_of.hpp"
#include "support/text.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::launch;
using namespace ddprun::launch::testing;
using ddprun::testing::contains;
using ddprun::testing::error_of;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLimit{20000};

struct Nodes {
  explicit Nodes(bool survives = false) : survives(survives) {}

  const bool survives;
  const Secret secret = make_secret();
  std::unique_ptr<StoreServer> server = store_server({"127.0.0.1", 0, secret}, survives);
  const StoreAddress address{"127.0.0.1", server->port(), secret};

  std::unique_ptr<JobLink> join(int node, int nodes, milliseconds timeout = kLimit) const {
    return std::make_unique<JobLink>(address, node, nodes, info_of(node), timeout, survives);
  }
  static NodeInfo info_of(int node) { return {"host" + std::to_string(node), node + 1}; }
  static std::unique_ptr<JobLink> join_at(const StoreAddress& server, int node, int nodes,
                                          milliseconds timeout = kLimit) {
    return std::make_unique<JobLink>(server, node, nodes, info_of(node), timeout);
  }

  std::vector<std::unique_ptr<JobLink>> join_all(int nodes) const {
    std::vector<std::unique_ptr<JobLink>> all(static_cast<std::size_t>(nodes));
    std::vector<std::thread> threads;
    for (int node = 0; node < nodes; ++node) {
      threads.emplace_back([&, node] { all[static_cast<std::size_t>(node)] = join(node, nodes); });
    }
    for (std::thread& thread : threads) thread.join();
    return all;
  }
};

// Whether `done` comes true at a node, while the other nodes stay alive.
bool turns_until(JobLink& node, const std::vector<JobLink*>& others, const std::function<bool()>& done) {
  const auto deadline = Clock::now() + kLimit;
  while (!done() && Clock::now() < deadline) {
    for (JobLink* other : others) other->turn();
    node.turn();
    pollfd entry{node.fd(), POLLIN, 0};
    ::poll(&entry, 1, 20);
  }
  return done();
}

// Waits until the node has got something, which `take` takes from it.
template <typename Take>
auto wait_for(JobLink& node, const std::vector<JobLink*>& others, Take take) {
  decltype(take(node)) taken;
  CHECK(turns_until(node, others, [&] {
    for (auto& each : take(node)) taken.push_back(each);
    return !taken.empty();
  }));
  return taken;
}

const auto take_changes = [](JobLink& node) { return node.take_changes(); };
const auto take_news = [](JobLink& node) { return node.take_news(); };

// Waits until the node has lost another one, and checks which.
void check_loss(JobLink& node, const std::vector<JobLink*>& others, int lost_node) {
  CHECK(turns_until(node, others, [&] { return node.failing(); }));
  const auto ends = node.ends();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].lost == lost_node + 1);
  CHECK(ends[0].host == "host" + std::to_string(lost_node));
}

TEST_CASE("nodes meet, and each learns what the others are") {
  const Nodes nodes;
  for (const auto& node : nodes.join_all(3)) {
    REQUIRE(node->nodes().size() == 3);
    CHECK(node->nodes()[2].host == "host2");
    CHECK(node->nodes()[2].nproc == 3);
    CHECK(node->world() == 6);
    CHECK(node->starts() == 0);
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
  const auto both = nodes.join_all(2);
  std::atomic<bool> done{false};
  std::thread alive([&] {
    while (!done) {
      for (const auto& node : both) node->turn();
      std::this_thread::sleep_for(milliseconds(100));
    }
  });
  const std::string twice = error_of([&] { nodes.join(1, 2); }), size = error_of([&] { nodes.join(2, 3); });
  done = true;
  alive.join();
  CHECK(contains(twice, "two nodes have --node-rank 1, at 127.0.0.1"));
  CHECK(contains(size, "--nnodes 3, and the first has 2"));
}

TEST_CASE("a node receives what another one announces, in that order") {
  const Nodes nodes;
  const auto both = nodes.join_all(2);
  Failure failure{1, ExitCode::failure, {}, "loss is NaN"};
  RankEnd end = both[1]->own_end(Error(failure.code, failure.message));
  end.progress = {57, Phase::allreduce, 2, 1234};
  end.crash = "where it was";
  end.signal = 9;
  end.memory_limit = true;
  both[1]->announce_stuck({1, "", {56, Phase::data, -1}});
  both[1]->announce_stuck({2, "", {}});
  both[1]->announce_stop(15);
  both[1]->watch({{56, Phase::data, -1}, {57, Phase::forward, -1}}, milliseconds(0));
  both[1]->announce_ends({end});
  CHECK(turns_until(*both[0], {both[1].get()}, [&] { return both[0]->have_ended(); }));
  CHECK(turns_until(*both[1], {both[0].get()}, [&] { return both[1]->has_announced_ends(); }));
  CHECK(both[0]->stop_signal() == 15);
  CHECK_FALSE(both[0]->failing());
  const auto stuck = both[0]->take_stuck();
  CHECK(stuck == std::vector{1, 2});
  CHECK(both[0]->hangs(1, {56, Phase::data, -1}));
  CHECK_FALSE(both[0]->hangs(1, {57, Phase::data, -1}));
  REQUIRE(both[0]->progress().size() == 2);
  CHECK(text(both[0]->progress()[1].progress) == "step 57 phase forward");
  const auto ends = both[0]->ends();
  REQUIRE(ends.size() == 1);
  CHECK(describe(ends[0]) == describe(end));
  CHECK(ends[0].crash == end.crash);
  CHECK(ends[0].signal == 9);
  CHECK(ends[0].memory_limit);
  CHECK(ends[0].progress.own_us == 1234);
  CHECK(ends[0].failure->message == failure.message);
  CHECK(std::chrono::abs(ends[0].time - end.time) < std::chrono::seconds(5));
}

TEST_CASE("what node 0 sends last arrives, though its server ends at once") {
  for (int round = 0; round < 100; ++round) {
    Nodes nodes;
    auto both = nodes.join_all(2);
    both[1]->announce_ends({});
    REQUIRE(turns_until(*both[0], {both[1].get()}, [&] { return both[0]->have_ended(); }));
    both[0]->announce_ends({});
    both[0].reset();
    nodes.server.reset();
    REQUIRE(turns_until(*both[1], {}, [&] { return both[1]->have_ended(); }));
    REQUIRE_FALSE(both[1]->failing());
  }
}

TEST_CASE("a node whose connection ends is lost for the others, and their waiting ranks end") {
  const Nodes nodes;
  const auto all = nodes.join_all(3);
  const auto store = net_store(nodes.address, kLimit);
  std::string reason;
  std::thread waiting([&] { reason = error_of([&] { store->require("key", kLimit); }); });
  std::this_thread::sleep_for(milliseconds(50));
  all[1]->disconnect();
  for (const std::size_t other : {0UL, 2UL}) check_loss(*all[other], {all[0].get(), all[2].get()}, 1);
  waiting.join();
  CHECK(contains(reason, "lost 127.0.0.1"));
}

TEST_CASE("a silent node is lost, though its connection is open") {
  const Nodes nodes;
  const auto both = nodes.join_all(2);
  const auto begin = Clock::now();
  check_loss(*both[0], {}, 1);
  CHECK(both[0]->ends()[0].silent);
  MESSAGE("a silent node was lost after ", std::chrono::duration_cast<milliseconds>(Clock::now() - begin).count(),
          " ms");
}

TEST_CASE("if messages pass in one direction only, both sides lose the other one at the same time") {
  for (const bool to_server : {true, false}) {
    CAPTURE(to_server);
    const Nodes nodes;
    Relay relay(nodes.address.port);
    const StoreAddress through_relay{"127.0.0.1", relay.port, nodes.secret};
    std::unique_ptr<JobLink> first, second;
    std::thread joining([&] { first = nodes.join(0, 2); });
    second = Nodes::join_at(through_relay, 1, 2);
    joining.join();
    (to_server ? relay.stop_to_server : relay.stop_to_client) = true;
    const auto cut = Clock::now();
    std::array<milliseconds, 2> noticed{};
    const auto watch = [&](JobLink& node, int lost) {
      check_loss(node, {}, lost);
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
  auto all = nodes.join_all(3);
  all[1].reset();
  all[2]->announce_stop(2);
  CHECK(turns_until(*all[0], {all[2].get()}, [&] { return all[0]->stop_signal().has_value(); }));
  CHECK_FALSE(all[0]->failing());
}

TEST_CASE("the end of the server is the loss of node 0") {
  Nodes nodes;
  const auto both = nodes.join_all(2);
  nodes.server.reset();
  check_loss(*both[1], {}, 0);
  CHECK_FALSE(both[1]->connected());
}

TEST_CASE("after a failure the nodes meet again, without the old keys") {
  const Nodes nodes;
  auto both = nodes.join_all(2);
  net_store(nodes.address, kLimit)->set("key", "of the first start");
  both.clear();
  const auto again = nodes.join_all(2);
  CHECK(again[0]->starts() == 1);
  CHECK_FALSE(net_store(nodes.address, kLimit)->get("key", milliseconds(0)).has_value());
}

TEST_CASE("in a job that survives, node 0 gets the changes, and all nodes its news") {
  const Nodes nodes(true);
  const auto all = nodes.join_all(3);
  RankEnd end;
  end.rank = 3;
  end.host = "host2";
  end.signal = 9;
  all[2]->announce(MemberChange{end});
  const auto changes = wait_for(*all[0], {all[1].get(), all[2].get()}, take_changes);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].end.rank == 3);
  CHECK(changes[0].end.signal == 9);
  CHECK_FALSE(changes[0].trains);
  all[0]->announce_news("5 ranks go on");
  for (const auto& node : all) {
    const auto news = wait_for(*node, {}, take_news);
    REQUIRE(news.size() == 1);
    CHECK(news[0] == "5 ranks go on");
    CHECK(node->take_changes().empty());
  }
}

TEST_CASE("in a job that survives, a lost node is a change, and may come back with as many ranks") {
  const Nodes nodes(true);
  auto all = nodes.join_all(3);
  all[2]->disconnect();
  auto changes = wait_for(*all[0], {all[1].get()}, take_changes);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].end.rank == 3);
  CHECK(changes[0].end.lost == 3);
  CHECK_FALSE(changes[0].trains);
  CHECK_FALSE(all[0]->failing());
  CHECK(all[0]->ends().empty());
  REQUIRE(turns_until(*all[1], {all[0].get()}, [&] { return all[1]->nodes_left() == 2; }));
  all[1]->announce_stop(15);
  CHECK_FALSE(all[1]->failing());

  const auto with_ranks = [&](int ranks) {
    return std::make_unique<JobLink>(nodes.address, 2, 3, NodeInfo{"other", ranks}, kLimit, true);
  };
  CHECK(contains(error_of([&] { with_ranks(2); }), "this node has 2 ranks, and had 3 before it was lost"));
  wait_for(*all[0], {all[1].get()}, take_changes);  // it was back, and is lost
  turns_until(*all[0], {all[1].get()}, [&] { return all[0]->nodes_left() == 2; });
  all[0]->take_changes();
  all[2] = with_ranks(3);
  CHECK(all[2]->comes_back());
  CHECK(all[2]->starts() == 0);
  CHECK(all[2]->first_rank() == 3);
  changes = wait_for(*all[0], {all[1].get(), all[2].get()}, take_changes);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].trains);
  CHECK(changes[0].end.lost == 3);
  CHECK(changes[0].end.host == "other");
  CHECK(all[0]->nodes_left() == 3);
  CHECK(turns_until(*all[2], {all[0].get(), all[1].get()}, [&] { return all[2]->stop_signal() == 15; }));
}

TEST_CASE("in a job that survives, the loss of node 0 is a failure") {
  const Nodes nodes(true);
  const auto all = nodes.join_all(2);
  all[0]->disconnect();
  check_loss(*all[1], {}, 0);
}

}  // namespace
