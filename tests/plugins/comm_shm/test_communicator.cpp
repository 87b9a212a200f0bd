// The backend: who may join, what it reports, and what it leaves. tests/plugins/lib/shm tests the collectives.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>
#include <string>
#include <vector>

#include "plugins/comm_shm/communicator.hpp"
#include "plugins/hosts.hpp"
#include "plugins/kill_all.hpp"
#include "plugins/rank_host.hpp"
#include "testing/hosts.hpp"

using namespace ddprun::testing;
using ddprun::CommError;
using ddprun::CommStatus;
using ddprun::DType;
using ddprun::Op;
using ddprun::shm_backend::ShmCommunicator;
using std::chrono::seconds;

namespace {

// The error of each rank as it joined.
std::vector<std::string> refusals(int size, const std::function<void(Rank&)>& before, const Placement& where = {}) {
  const auto body = [&](Rank& rank) {
    before(rank);
    RankHost host(rank, "auto", 20'000);
    try {
      const ShmCommunicator communicator(host.host());
    } catch (const CommError& failure) {
      rank.report(name_of(failure.status()) + " " + failure.what());
    }
  };
  const auto outcomes = run_ranks(size, As::processes, seconds(60), body, where);
  CHECK(failures(outcomes) == "");
  std::vector<std::string> said;
  for (const auto& outcome : outcomes) {
    for (const auto& record : outcome.records) said.push_back(record);
  }
  return said;
}

const std::string kUnsupported = name_of(CommStatus::unsupported) + " ";

}  // namespace

TEST_CASE("ranks on several hosts are refused; the error names a rank and what to use instead") {
  if (!may_make_hosts()) return;
  const std::string expected = kUnsupported +
                               "shm is for ranks that share a host, and rank 2 does not share rank 0's kernel, IPC and "
                               "PID namespaces; use comm.backend = \"ucx\" or \"gloo\"";
  CHECK(refusals(4, [](Rank& rank) { move_to_host(rank, {0, 0, 1, 1}); }) == std::vector(4, expected));
  if (!Hosts::are_possible()) return;
  const Hosts hosts(2);
  CHECK(refusals(
            4, [](Rank&) {}, hosts.placement(2)) == std::vector(4, expected));
}

TEST_CASE("if ranks get no shared memory, all ranks are refused") {
  const auto said = refusals(2, [](Rank& rank) {
    if (rank.rank() == 0) return;
    signal(SIGXFSZ, SIG_IGN);
    const rlimit one_page = {4096, 4096};
    setrlimit(RLIMIT_FSIZE, &one_page);
  });
  REQUIRE(said.size() == 2);
  for (const auto& text : said) {
    CHECK_MESSAGE(text.starts_with(kUnsupported + "the ranks cannot share memory: "), text);
    CHECK_MESSAGE(text.ends_with("use comm.backend = \"ucx\" or \"gloo\""), text);
  }
}

TEST_CASE("each request names the algorithm that served") {
  for (const std::string asked : {"auto", "direct", "staged"}) {
    CAPTURE(asked);
    CHECK(failures(run_ranks(2, As::processes, seconds(60), [&](Rank& rank) {
            RankHost host(rank, asked, 20'000);
            ShmCommunicator communicator(host.host());
            constexpr std::size_t kCount = 100'000;
            const auto memory = communicator.allocate(kCount * sizeof(float));
            auto* const shared = static_cast<float*>(memory.get());
            std::vector<float> own(kCount);
            const auto expect = [&](float* data, const std::string& served) {
              const auto by =
                  communicator.allreduce(allreduce_of(DType::float32, Op::sum, data, data, kCount)).wait(seconds(20));
              if (by.algorithm != served) throw std::runtime_error(std::string("served by ") + by.algorithm);
              if (by.transport != std::string("memory")) throw std::runtime_error(by.transport);
            };
            expect(shared, asked == "staged" ? "staged" : "direct");
            if (asked != "direct") return expect(own.data(), "staged");
            try {
              expect(own.data(), "nothing");
              throw std::runtime_error("not refused");
            } catch (const CommError& failure) {
              if (failure.status() != CommStatus::unsupported) throw;
            }
            expect(shared, "direct");
          })) == "");
  }
}

TEST_CASE("nothing is left if all ranks are killed at once, at any time") {
  CHECK(left_by_killed_ranks<ShmCommunicator>({"auto", Killed::joining, 80, std::chrono::microseconds(500)}) ==
        std::vector<std::string>());
}
