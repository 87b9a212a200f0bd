// The two levels of a hierarchical allreduce, with a stand-in for what a plugin does between the hosts.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "plugins/hosts.hpp"
#include "plugins/rank_host.hpp"
#include "shm/hierarchy.hpp"
#include "testing/ranks.hpp"

using namespace ddprun::testing;
using ddprun::Collective;
using ddprun::CommError;
using ddprun::CommStatus;
using ddprun::DType;
using ddprun::Op;
using ddprun::shm::Hierarchy;
using std::chrono::seconds;

namespace {

constexpr std::size_t kSeveralParts = 2'500'001;  // float32: 3 parts

// A rank of one of two hosts with two ranks each.
class Member {
 public:
  explicit Member(Rank& rank) : as_host_(rank, "hierarchical", 20'000) {
    move_to_host(rank, {0, 0, 1, 1});
    const auto host = as_host_.host();
    hierarchy_.emplace(host, ddprun::host::processes_of(host));
    hierarchy_->require_usable("nothing else");
  }
  Hierarchy& hierarchy() { return *hierarchy_; }

 private:
  RankHost as_host_;
  std::optional<Hierarchy> hierarchy_;
};

std::string end_of(Member& member, std::vector<float>& values, const Hierarchy::Between& between) {
  try {
    member.hierarchy().allreduce(allreduce_of(DType::float32, Op::sum, values.data(), values.data(), values.size()),
                                 between);
  } catch (const CommError& failure) {
    return name_of(failure.status()) + (member.hierarchy().has_failed_between() ? " between: " : " here: ") +
           failure.what();
  }
  return "no failure";
}

}  // namespace

TEST_CASE("each part is reduced within the hosts, then between them in order, and each rank gets the result") {
  if (!may_make_hosts()) return;
  const auto outcomes = run_ranks(4, As::processes, seconds(60), [](Rank& rank) {
    Member member(rank);
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, kSeveralParts}) {
      for (const Op op : {Op::sum, Op::avg, Op::max}) {
        std::vector<float> send(count), recv(count);
        for (std::size_t i = 0; i < count; ++i) {
          send[i] = static_cast<float>(i % 1000 + static_cast<std::size_t>(rank.rank()));
        }
        std::size_t reduced = 0;
        const auto between = [&](const Collective& part) {
          auto* const values = static_cast<float*>(part.recv);
          if (part.op != op || values != recv.data() + reduced) throw std::runtime_error("not the next part");
          reduced += part.count;
          if (!member.hierarchy().leads()) return;
          if (part.send != part.recv) throw std::runtime_error("not in place");
          for (std::size_t i = 0; i < part.count; ++i) values[i] = values[i] * 2 + 1;
        };
        member.hierarchy().allreduce(allreduce_of(DType::float32, op, send.data(), recv.data(), count),
                                     {between, [] {}});
        if (reduced != count) throw std::runtime_error("reduced " + std::to_string(reduced));
        const std::size_t first = rank.rank() < 2 ? 0 : 2;
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t low = i % 1000 + first, high = low + 1;
          const auto here = static_cast<float>(op == Op::max ? high : low + high);
          if (recv[i] != here * 2 + 1) throw std::runtime_error("element " + std::to_string(i));
        }
      }
    }
  });
  CHECK(failures(outcomes) == "");
}

TEST_CASE("a failure between the hosts ends the call on all ranks of the host") {
  if (!may_make_hosts()) return;
  for (const std::size_t count : {std::size_t{1}, kSeveralParts}) {
    CAPTURE(count);
    const auto outcomes = run_ranks(4, As::processes, seconds(60), [&](Rank& rank) {
      Member member(rank);
      std::vector<float> values(count, 1);
      std::size_t reduced = 0;
      const auto between = [&](const Collective& part) {
        reduced += part.count;
        if (reduced == count && rank.rank() == 2) throw CommError(CommStatus::peer_lost, "the network is down");
      };
      rank.report(end_of(member, values, {between, [] {}}));
      member.hierarchy().node().leave(0);
      rank.meet();
    });
    CHECK(failures(outcomes) == "");
    for (const auto& outcome : outcomes) {
      REQUIRE(outcome.records.size() == 1);
      const std::vector<std::string> expected = {"no failure", "no failure",
                                                 name_of(CommStatus::peer_lost) + " between: the network is down",
                                                 name_of(CommStatus::peer_lost) + " here: allreduce: rank 0 is gone"};
      CHECK(outcome.records[0] == expected[static_cast<std::size_t>(outcome.rank)]);
    }
  }
}

TEST_CASE("a failure within a host ends the part that is being reduced between the hosts") {
  if (!may_make_hosts()) return;
  const auto outcomes = run_ranks(4, As::processes, seconds(60), [](Rank& rank) {
    Member member(rank);
    std::vector<float> values(kSeveralParts, 1);
    if (rank.rank() % 2 == 1) {  // takes part in the first part only
      const auto first = allreduce_of(DType::float32, Op::sum, values.data(), values.data(), (4 << 20) / sizeof(float));
      member.hierarchy().node().run("allreduce", [&](ddprun::shm::Collectives& all, ddprun::shm::Waiter& waiter) {
        all.reduce_to_first(first, waiter);
      });
      member.hierarchy().node().leave(rank.rank());
    } else {
      std::atomic<bool> aborted{false};
      const auto between = [&](const Collective&) {
        const auto limit = Clock::now() + seconds(20);
        while (!aborted && Clock::now() < limit) std::this_thread::yield();
        throw CommError(CommStatus::aborted, aborted ? "aborted" : "not aborted");
      };
      rank.report(end_of(member, values, {between, [&] { aborted = true; }}));
      if (!aborted) throw std::runtime_error("not aborted");
    }
    rank.meet();
  });
  CHECK(failures(outcomes) == "");
  for (const int leader : {0, 2}) {
    REQUIRE(outcomes[leader].records.size() == 1);
    CHECK(outcomes[leader].records[0] ==
          name_of(CommStatus::peer_lost) + " here: allreduce: rank " + std::to_string(leader + 1) + " is gone");
  }
}
