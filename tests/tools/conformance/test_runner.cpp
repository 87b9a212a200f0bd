// The verdicts of the suite: cases that end in every way, with a correct plugin.
#include <doctest/doctest.h>
#include <sys/shm.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "support/read_file.hpp"
#include "tools/conformance/suite.hpp"

using namespace ddprun::conformance;
using ddprun::testing::TempDir;
using State = Result::State;

namespace {

std::vector<Result> results_of(const std::vector<Case>& cases, const TempDir& shared_memory = TempDir()) {
  Settings settings;
  settings.plugin = ddprun::plugin::Registry({}).comm(DDPRUN_GOOD_FAKE);
  settings.capabilities = ddprun::comm::capabilities_of(*settings.plugin.table);
  Leftovers leftovers(shared_memory.path());
  std::vector<Result> results;
  run_cases({.settings = settings, .size = 2}, cases, leftovers, [&](const Result& one) { results.push_back(one); });
  return results;
}

Case simple(const std::string& name, std::function<void(Context&)> body) {
  return {.group = "test", .name = name, .body = std::move(body)};
}

void use(Context& context) {
  context.wait(context.shared("auto").barrier());
}

}  // namespace

TEST_CASE("a case that fails on one rank fails, names the rank, and lets the others run") {
  const auto results = results_of({simple("one", use),
                                   simple("two",
                                          [](Context& context) {
                                            if (context.rank() == 1) context.fail("no good");
                                            use(context);
                                          }),
                                   simple("three", use)});
  REQUIRE(results.size() == 4);
  CHECK(results[0].state == State::passed);
  CHECK(results[1].state == State::failed);
  CHECK(results[1].text == "rank 1: no good");
  CHECK(results[2].state == State::passed);
  CHECK(results[3].state == State::passed);
}

TEST_CASE("a crash fails its case, and the cases after it run in a new world") {
  const auto results = results_of({simple("one", use),
                                   simple("crash",
                                          [](Context& context) {
                                            if (context.rank() == 0) raise(SIGKILL);
                                            context.ranks().meet();
                                          }),
                                   simple("three", use)});
  REQUIRE(results.size() == 4);
  CHECK(results[0].state == State::passed);
  CHECK(results[1].state == State::failed);
  CHECK(results[1].text == "rank 0: killed by signal 9 (Killed)");
  CHECK(results[2].state == State::passed);
}

TEST_CASE("a case that hangs is ended by its alarm and reported as hung") {
  const auto results = results_of({simple("hangs", [](Context& context) {
    if (context.rank() == 0) raise(SIGALRM);  // the kernel sends it after kCaseSeconds
  })});
  CHECK(results[0].state == State::failed);
  CHECK(results[0].text == "rank 0: hung: did not end the case within 90 s, and was killed");
}

TEST_CASE("an exception fails its case with its text") {
  const auto results = results_of({simple("throws", [](Context&) { throw std::runtime_error("oh"); })});
  CHECK(results[0].state == State::failed);
  CHECK(results[0].text == "rank 0: threw: oh\nrank 1: threw: oh");
}

TEST_CASE("different bits on the ranks fail a case, with the first element that differs") {
  const auto results = results_of({simple("drift", [](Context& context) {
    std::vector<int32_t> mine(100'000, 7);
    context.judge_same(ddprun::DType::int32, reinterpret_cast<const unsigned char*>(mine.data()), mine.size());
    for (const std::size_t index : {70'001, 80'000}) mine[index] += context.rank();
    context.judge_same(ddprun::DType::int32, reinterpret_cast<const unsigned char*>(mine.data()), mine.size());
  })});
  CHECK(results[0].state == State::failed);
  CHECK(results[0].text == "rank 1: element 70001 is 8, and on rank 0 7: all ranks must get the same bits");
}

TEST_CASE("a rank that should die and survives fails its case; one that dies passes it") {
  const auto dying = [](bool really) {
    return Case{.group = "test",
                .name = "death",
                .body =
                    [=](Context& context) {
                      if (really && context.is_last()) raise(SIGKILL);
                    },
                .own_world = true,
                .last_rank_dies = true};
  };
  const auto results = results_of({dying(true), dying(false)});
  CHECK(results[0].state == State::passed);
  CHECK(results[1].state == State::failed);
}

TEST_CASE("files and segments that a rank leaves behind are found") {
  const TempDir shared_memory;
  const TempDir folder;
  const std::string shared = shared_memory.path() / "segment", id = folder.path() / "id";
  const auto results = results_of({simple("litters",
                                          [&](Context& context) {
                                            if (context.rank() != 0) return;
                                            std::ofstream(std::string(std::getenv("TMPDIR")) + "/litter") << "x";
                                            std::ofstream(shared) << "x";
                                            std::ofstream(id) << shmget(IPC_PRIVATE, 4096, 0600);
                                          })},
                                  shared_memory);
  const Result& end = results.back();
  CHECK(end.state == State::failed);
  const int segment = std::stoi(ddprun::testing::read_file(id));
  CHECK(end.text.find("/litter") != std::string::npos);
  CHECK(end.text.find(shared) != std::string::npos);
  CHECK(end.text.find("System V segment " + std::to_string(segment) + " of 4096 bytes") != std::string::npos);
  shmctl(segment, IPC_RMID, nullptr);
}

TEST_CASE("a segment that the kernel will remove is not left behind") {
  const TempDir shared_memory;
  const int segment = shmget(IPC_PRIVATE, 4096, 0600);
  const void* const attached = shmat(segment, nullptr, 0);
  const auto found = [&] { return Leftovers(shared_memory.path()).found({getpid()}); };
  CHECK(found().size() == 1);
  shmctl(segment, IPC_RMID, nullptr);
  CHECK(found().empty());
  shmdt(attached);
}

TEST_CASE("after a failed case that the others need, none is run") {
  Case joins = simple("joins", [](Context& context) { context.fail("no"); });
  joins.own_world = joins.required = true;
  const auto results = results_of({joins, simple("two", use)});
  REQUIRE(results.size() == 3);
  CHECK(results[0].state == State::failed);
  CHECK(results[1].state == State::not_run);
  CHECK(results[1].text == "\"joins\" failed");
  CHECK(results[2].state == State::passed);
}
