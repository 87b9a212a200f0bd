// What a signal to the supervisor does, and what its own end does to the ranks.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "launch/failure.hpp"
#include "launch/job.hpp"

namespace {

using namespace ddprun::launch::testing;

TEST_CASE("SIGINT, SIGTERM and SIGUSR1 let the ranks finish a common step") {
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGUSR1, 143}}) {
    FakeJob job(3, {"0:at=1,0", "0:print=ready", "*:train=1000000"});
    REQUIRE(eventually([&] { return contains(job->out(), "ready"); }));
    std::this_thread::sleep_for(milliseconds(50));
    job->send(signal);
    const auto result = job->wait();
    CHECK(result.code == code);
    std::smatch match;
    CHECK(contains(result.err,
                   "ddprun: stopping: the ranks finish a common step and save (a second signal ends them at once)"));
    REQUIRE(std::regex_search(result.out, match, std::regex("stopped after (\\d+)\n")));
    CHECK(count_of(result.out, "stopped after " + match[1].str() + "\n") == 3);
    CHECK(!contains(result.err, "failed"));
    CHECK(job.folder_gone());
  }
}

TEST_CASE("SIGUSR2 reaches every rank, ends none that does not handle it, and the job goes on") {
  FakeJob job(3, {"*:usr2", "*:print=ready", "*:stop"}), unaware(2, {"*:print=ready", "*:stop"});
  REQUIRE(eventually([&] { return count_of(job->out(), "ready") == 3 && count_of(unaware->out(), "ready") == 2; }));
  job->send(SIGUSR2);
  REQUIRE(eventually([&] { return count_of(job->out(), "usr2 0\n") == 3; }));
  job->send(SIGUSR2);
  REQUIRE(eventually([&] { return count_of(job->out(), "usr2 0\n") == 6; }));
  unaware->send(SIGUSR2);
  std::this_thread::sleep_for(milliseconds(100));
  for (FakeJob* each : {&job, &unaware}) {
    CHECK(is_alive((*each)->pid()));
    (*each)->send(SIGTERM);
    const auto result = (*each)->wait(kSlack);
    CHECK(result.code == 143);
    CHECK(!contains(result.err, "failed"));
  }
}

// How many ranks print that they got SIGUSR2 with kJobFails. They have a tenth of a second for it, which a busy machine
// may not give them, but rarely three times.
std::size_t notified_ranks(const std::vector<std::string>& steps, int code, std::size_t expected) {
  std::size_t received = 0;
  for (int attempt = 0; attempt < 3 && received != expected; ++attempt) {
    FakeJob job(3, steps);
    const auto result = job->wait(kSlack);
    CHECK(result.code == code);
    CHECK(contains(final_line(result.err), "rank 1 "));
    received = static_cast<std::size_t>(count_of(result.out, "usr2 1\n"));
  }
  return received;
}

TEST_CASE("when a rank fails or is stopped, the others get SIGUSR2 with kJobFails before they are killed") {
  const std::vector<std::string> met = {"*:usr2", "0:set=a", "2:set=b", "1:get=a", "1:get=b"};
  const auto then = [&](const std::string& step) {
    auto steps = met;
    steps.insert(steps.end(), {step, "*:hang"});
    return steps;
  };
  CHECK(notified_ranks(then("1:exit=3"), 3, 2) == 2);
  CHECK(notified_ranks(then("1:signal=" + std::to_string(SIGSTOP)), 5, 2) == 2);
}

TEST_CASE("a second signal immediately ends ranks that do not end by themselves") {
  FakeJob job(2, {"*:at=3,0", "0:print=ready", "*:hang"});
  REQUIRE(eventually([&] { return contains(job->out(), "ready"); }));
  job->send(SIGINT);
  REQUIRE(eventually([&] { return contains(job->err(), "a second signal ends them at once"); }));
  std::this_thread::sleep_for(milliseconds(50));
  job->send(SIGINT);
  const auto begin = std::chrono::steady_clock::now();
  const auto result = job->wait();
  CHECK(std::chrono::steady_clock::now() - begin < kSlack);  // far below the grace of 60 s
  CHECK(result.code == 130);
  CHECK(contains(final_line(result.err), "interrupted; the ranks were killed"));
}

TEST_CASE("a second SIGUSR1 is the same request; SIGTERM after it ends the ranks immediately") {
  FakeJob job(2, {"*:at=3,0", "0:print=ready", "*:hang"});
  REQUIRE(eventually([&] { return contains(job->out(), "ready"); }));
  job->send(SIGUSR1);
  REQUIRE(eventually([&] { return contains(job->err(), "a second signal ends them at once"); }));
  job->send(SIGUSR1);
  std::this_thread::sleep_for(milliseconds(200));
  CHECK(is_alive(job->pid()));
  job->send(SIGTERM);
  const auto result = job->wait(kSlack);
  CHECK(result.code == 143);
  CHECK(contains(final_line(result.err), "terminated; the ranks were killed"));
}

TEST_CASE("ranks that stop because one of them received a signal end the job as terminated") {
  FakeJob job(2, {"*:at=3,0", "1:request"});
  const auto result = job->wait();
  CHECK(result.code == 143);
  CHECK(final_line(result.err) == "ddprun: terminated; all ranks stopped");
  CHECK(job.folder_gone());
}

TEST_CASE("ranks that do not stop are killed when the grace is over") {
  FakeJob job(2, {"*:at=3,0", "0:print=ready", "*:hang"}, false, "-", "100");
  REQUIRE(eventually([&] { return contains(job->out(), "ready"); }));
  job->send(SIGTERM);
  const auto result = job->wait();
  CHECK(result.code == 143);
  CHECK(final_line(result.err) ==
        "ddprun: terminated; the ranks were killed, as some had not ended after 0.1 s (launch.grace)");
}

TEST_CASE("before the first step a signal ends the job immediately") {
  FakeJob job(2, {"0:print=ready", "*:hang"});
  REQUIRE(eventually([&] { return contains(job->out(), "ready"); }));
  job->send(SIGINT);
  CHECK(job->wait(kSlack).code == 130);
}

TEST_CASE("a failure while the ranks stop is reported, and the exit code stays that of the signal") {
  FakeJob job(2, {"*:at=3,0", "0:print=ready", "1:stop", "1:report=1,disk full", "1:exit=1", "*:hang"});
  REQUIRE(eventually([&] { return contains(job->out(), "ready"); }));
  job->send(SIGINT);
  const auto result = job->wait();
  CHECK(result.code == 130);
  CHECK(final_line(result.err).ends_with(": disk full"));
}

TEST_CASE("a report to nobody makes no file") {
  const InTempDir here;
  ddprun::launch::report_failure("", 0, ddprun::ExitCode::failure, "nobody listens");
  ddprun::launch::report_failure("no/such/folder", 0, ddprun::ExitCode::failure, "nor here");
  CHECK(std::filesystem::is_empty("."));
}

}  // namespace
