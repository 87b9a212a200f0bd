// The communicator if ranks share memory with only some of the others, or with none. A "host" is a separate IPC
// namespace, or all that Hosts separates.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugins/comm_ucx/choice.hpp"
#include "plugins/comm_ucx/communicator.hpp"
#include "plugins/hosts.hpp"
#include "plugins/rank_host.hpp"
#include "support/variable.hpp"
#include "testing/arithmetic.hpp"
#include "testing/hosts.hpp"

using namespace ddprun::testing;
using ddprun::Collective;
using ddprun::CommError;
using ddprun::CommStatus;
using ddprun::DType;
using ddprun::Op;
using ddprun::ucx_backend::kOptions;
using ddprun::ucx_backend::UcxCommunicator;
using std::chrono::seconds;

namespace {

const std::vector<std::vector<int>> kWorlds = {{0, 0, 1, 1}, {0, 1, 0, 1, 1}, {0, 1, 2, 2}, {0, 1}};

void check_sum(Rank& rank, UcxCommunicator& communicator, DType dtype, Op op, std::size_t count, std::byte* send,
               std::byte* recv, const std::string& algorithm = "hierarchical") {
  ddprun::conformance::fill(dtype, op, 7, rank.rank(), 0, count, send);
  const auto call = allreduce_of(dtype, op, send, recv, count);
  const auto by = communicator.allreduce(call).wait(seconds(20));
  if (by.algorithm != algorithm) throw std::runtime_error(std::string("carried out by ") + by.algorithm);
  for (std::size_t i = 0; i < count; ++i) {
    const auto expected = ddprun::conformance::reduce(dtype, op, 7, rank.size(), i);
    if (ddprun::conformance::accepts(dtype, expected, ddprun::conformance::load(dtype, recv, i))) continue;
    throw std::runtime_error("count " + std::to_string(count) + " element " + std::to_string(i));
  }
  std::size_t digest =
      std::hash<std::string_view>()({reinterpret_cast<const char*>(recv), count * ddprun::size_of(call.dtype)});
  std::vector<std::size_t> digests(rank.size());
  rank.allgather(&digest, sizeof digest, digests.data());
  if (std::count(digests.begin(), digests.end(), digest) != rank.size()) throw std::runtime_error("the ranks differ");
}

}  // namespace

TEST_CASE("hierarchical reduces within each host, then between their first ranks, then spreads the result") {
  if (!may_make_hosts()) return;
  for (const auto& hosts : kWorlds) {
    CAPTURE(hosts.size());
    CHECK(failures(run_ranks(static_cast<int>(hosts.size()), As::processes, seconds(300), [&](Rank& rank) {
            move_to_host(rank, hosts);
            RankHost host(rank, "hierarchical", 20'000);
            UcxCommunicator communicator(host.host(kOptions));
            constexpr std::size_t kMany = 1'400'003;  // several parts of hierarchy.hpp
            const auto memory = communicator.allocate(8 * kMany);
            auto* shared = static_cast<std::byte*>(memory.get());
            std::vector<std::byte> own(8 * kMany);
            const auto check = [&](Op op, std::size_t count) {
              check_sum(rank, communicator, DType::float32, op, count, own.data(), own.data());
              check_sum(rank, communicator, DType::float64, op, count, shared, shared);
              check_sum(rank, communicator, DType::bfloat16, op, count, own.data(), shared);
            };
            for (const std::size_t count : {0, 1, 1'000, 5'003, 100'003}) {
              for (const Op op : {Op::sum, Op::avg, Op::max}) check(op, count);
            }
            check(Op::sum, kMany);  // once: sanitizers make the check slow
          })) == "");
  }
}

TEST_CASE("after hierarchical, collectives of all ranks still match") {
  if (!may_make_hosts()) return;
  for (const auto& hosts : kWorlds) {
    CAPTURE(hosts.size());
    CHECK(failures(run_ranks(static_cast<int>(hosts.size()), As::processes, seconds(60), [&](Rank& rank) {
            move_to_host(rank, hosts);
            RankHost host(rank, "hierarchical", 5'000);
            UcxCommunicator communicator(host.host(kOptions));
            for (int turn = 0; turn < 3; ++turn) {
              float one = 1;
              const auto sum = allreduce_of(DType::float32, Op::sum, &one, &one, 1);
              communicator.allreduce(sum).wait(seconds(5));
              communicator.barrier().wait(seconds(5));
              int64_t number = rank.rank() == 1 ? 7 : 0;
              Collective call = {};
              call.dtype = DType::int64;
              call.send = call.recv = &number;
              call.count = 1;
              call.root = 1;
              communicator.broadcast(call).wait(seconds(5));
              if (one != static_cast<float>(rank.size()) || number != 7) throw std::runtime_error("wrong");
            }
          })) == "");
  }
}

TEST_CASE("the other ranks name a rank that dies on one host") {
  if (!may_make_hosts()) return;
  const auto outcomes = run_ranks(4, As::processes, seconds(60), [](Rank& rank) {
    move_to_host(rank, {0, 0, 1, 1});
    RankHost host(rank, "auto", 20'000);
    UcxCommunicator communicator(host.host(kOptions));
    std::vector<std::byte> data(4 * 100'000);
    check_sum(rank, communicator, DType::float32, Op::sum, 100'000, data.data(), data.data());
    if (rank.rank() == 3) raise(SIGKILL);
    Collective call = {};
    call.dtype = DType::float32;
    call.send = call.recv = data.data();
    call.count = 100'000;
    try {
      communicator.allreduce(call);
    } catch (const CommError& failure) {
      rank.report(name_of(failure.status()) + " " + failure.what());
    }
  });
  for (const int other : {0, 1, 2}) {
    REQUIRE(outcomes[other].records.size() == 1);
    CHECK(outcomes[other].records[0] == name_of(CommStatus::peer_lost) + " allreduce: rank 3 is gone");
  }
}

TEST_CASE("two ranks in network namespaces communicate over TCP, and notice each other's end") {
  if (!Hosts::are_possible()) return;
  const Hosts hosts(2);
  for (const std::string algorithm : {"ring", "tree", "halving_doubling"}) {
    CAPTURE(algorithm);
    const auto body = [&](Rank& rank) {
      RankHost host(rank, algorithm, 20'000);
      UcxCommunicator communicator(host.host(kOptions));
      std::vector<std::byte> send(4 * 1'000'003), recv(send.size());
      for (const std::size_t count : {1, 1'000, 1'000'003}) {
        check_sum(rank, communicator, DType::float32, Op::sum, count, send.data(), recv.data(), algorithm);
      }
      rank.report(communicator.barrier().wait(seconds(20)).transport);
      if (rank.rank() == 1) raise(SIGKILL);
      try {
        communicator.barrier();
      } catch (const CommError& failure) {
        rank.report(name_of(failure.status()));
      }
    };
    const auto outcomes = run_ranks(2, As::processes, seconds(60), body, hosts.placement(1));
    CHECK(outcomes[0].describe() == "rank 0: finished");
    CHECK(outcomes[0].records == std::vector<std::string>{"tcp", name_of(CommStatus::peer_lost)});
  }
}

namespace {

// What serves an allreduce of `count` floats, as "algorithm transport".
std::string served(UcxCommunicator& communicator, std::size_t count) {
  std::vector<float> data(count, 1);
  const auto by =
      communicator.allreduce(allreduce_of(DType::float32, Op::sum, data.data(), data.data(), count)).wait(seconds(20));
  return by.algorithm + std::string(" ") + by.transport;
}

// The same on every rank of such a world, for a small and a large vector.
std::vector<std::string> all_served(
    const std::vector<int>& hosts, const std::string& algorithm,
    const std::function<void(Rank&)>& before = [](Rank&) {}) {
  const auto outcomes = run_ranks(static_cast<int>(hosts.size()), As::processes, seconds(60), [&](Rank& rank) {
    before(rank);
    if (hosts.back() > 0) move_to_host(rank, hosts);
    RankHost host(rank, algorithm, 20'000);
    UcxCommunicator communicator(host.host(kOptions));
    for (const std::size_t count : {1, 1'000'000}) rank.report(served(communicator, count));
  });
  CHECK(failures(outcomes) == "");
  std::vector<std::string> said;
  for (const auto& outcome : outcomes) {
    for (const auto& record : outcome.records) said.push_back(record);
  }
  return said;
}

void without_shared_memory(Rank&) {
  signal(SIGXFSZ, SIG_IGN);
  const rlimit one_page = {4096, 4096};
  setrlimit(RLIMIT_FSIZE, &one_page);
}

}  // namespace

TEST_CASE("auto on one host uses UCX's transports, never our shared memory") {
  for (const auto& text : all_served({0, 0}, "auto")) {
    CHECK_MESSAGE((text.starts_with("ring ") || text.starts_with("tree ")), text);
    CHECK_MESSAGE(text.find("memory") == std::string::npos, text);
  }
}

TEST_CASE("hierarchical reports its transports within a host and between hosts") {
  CHECK(all_served({0, 0}, "hierarchical") == std::vector<std::string>(4, "hierarchical memory"));
  if (!may_make_hosts()) return;
  const Variable tls("UCX_TLS", "tcp,self");
  CHECK(all_served({0, 0, 1, 1}, "hierarchical") == std::vector<std::string>(8, "hierarchical memory,tcp"));
  CHECK(all_served({0, 0, 1, 1}, "auto") == std::vector<std::string>(8, "hierarchical memory,tcp"));
  CHECK(all_served({0, 1}, "auto") == std::vector<std::string>{"tree tcp", "ring tcp", "tree tcp", "ring tcp"});
}

TEST_CASE("if ranks of a host get no shared memory, hierarchical is refused, and auto is ring or tree") {
  const Variable tls("UCX_TLS", "tcp,self");
  const auto outcomes = run_ranks(2, As::processes, seconds(60), [](Rank& rank) {
    without_shared_memory(rank);
    RankHost host(rank, "hierarchical", 20'000);
    try {
      UcxCommunicator communicator(host.host(kOptions));
    } catch (const CommError& failure) {
      rank.report(name_of(failure.status()) + " " + failure.what());
    }
  });
  for (const auto& outcome : outcomes) {
    REQUIRE(outcome.records.size() == 1);
    CHECK(outcome.records[0].starts_with(name_of(CommStatus::unsupported) + " algorithm \"hierarchical\": "));
    CHECK(outcome.records[0].ends_with("use \"ring\", \"tree\" or \"halving_doubling\""));
  }
  if (may_make_hosts()) {
    for (const auto& text : all_served({0, 0, 1, 1}, "auto", without_shared_memory)) {
      CHECK_MESSAGE((text == "ring tcp" || text == "tree tcp"), text);
    }
  }
}
