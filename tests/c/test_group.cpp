#include <doctest/doctest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <sstream>

#include "joined.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::c {
namespace {

TEST_CASE("the plugins in the search path are listed and described") {
  const std::string names = ddprun_backends();
  CHECK(names.find("gloo") != std::string::npos);
  CHECK(names.find("shm") != std::string::npos);
  ddprun_backend_info info{};
  info.struct_size = sizeof info;
  REQUIRE(ddprun_backend("shm", &info) == DDPRUN_OK);
  CHECK(info.name == std::string("shm"));
  CHECK((info.capabilities & DDPRUN_CAP_HOST) != 0);
  CHECK(ddprun_backend("shn", &info) == DDPRUN_UNSUPPORTED);
  CHECK(std::string(ddprun_error()).find("did you mean \"shm\"?") != std::string::npos);
  info.struct_size = 8;
  CHECK(ddprun_backend("shm", &info) == DDPRUN_INVALID);
}

TEST_CASE("ranks join and add over each plugin, as processes and as threads") {
  for (const char* backend : {"shm", "gloo", "ucx"}) {
    for (const As as : {As::processes, As::threads}) {
      CAPTURE(backend);
      CAPTURE(name_of(as));
      const auto outcomes = run_ranks(3, as, kDeadline, [&](Rank& rank) {
        const auto group = join(options_of(rank, backend));
        std::vector<float> numbers{1, static_cast<float>(rank.rank())};
        require(allreduce(group, numbers) == DDPRUN_OK);
        require(numbers == std::vector<float>{3, 3}, "wrong sums");
        require(ddprun_group_failure(group.get()) == DDPRUN_OK, "a group that works has failed");
      });
      CHECK(failures(outcomes) == "");
    }
  }
}

TEST_CASE("ranks that differ do not join, and each says in what") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [](Rank& rank) {
    auto options = options_of(rank, "gloo");
    options.algorithm = rank.rank() == 0 ? "ring" : "tree";
    join(options);
  });
  for (const auto& outcome : outcomes) {
    CHECK_MESSAGE(outcome.error.find("rank 0 has algorithm = ring, rank 1 has algorithm = tree") != std::string::npos,
                  outcome.error);
  }
}

TEST_CASE("ranks of which one is deterministic do not join") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [](Rank& rank) {
    auto options = options_of(rank, "shm");
    options.deterministic = rank.rank();
    join(options);
  });
  for (const auto& outcome : outcomes) CHECK(outcome.error.find("deterministic = on") != std::string::npos);
}

TEST_CASE("a struct of another size is refused, and nothing starts") {
  const auto outcomes = run_ranks(1, As::processes, kDeadline, [](Rank& rank) {
    const auto group = join(options_of(rank, "shm"));
    ddprun_collective call{};
    call.struct_size = sizeof call - 1;
    ddprun_work* work = nullptr;
    require(ddprun_start(group.get(), DDPRUN_ALLREDUCE, &call, 1, &work) == DDPRUN_INVALID && work == nullptr);
    require(std::string(ddprun_error()) == "ddprun_start: struct_size is not that of ddprun_collective");
  });
  CHECK(failures(outcomes) == "");
}

TEST_CASE("a wrong option of the library or of a plugin is refused") {
  const auto outcomes = run_ranks(1, As::processes, kDeadline, [](Rank& rank) {
    const auto error_with = [&](auto change) {
      auto options = options_of(rank, "gloo");
      change(options);
      ddprun_group* group = nullptr;
      require(ddprun_group_create(&options, &group) != DDPRUN_OK, "joined");
      return std::string(ddprun_error());
    };
    const ddprun_comm_option unknown{"tunning", "x"};
    const auto expect = [](const std::string& error, const char* part) {
      require(error.find(part) != std::string::npos, error);
    };
    expect(error_with([](auto& options) { options.struct_size = 4; }), "struct_size");
    expect(error_with([](auto& options) { options.rank = 1; }), "rank is not within");
    expect(error_with([](auto& options) { options.algorithm = "rign"; }), "did you mean \"ring\"?");
    expect(error_with([&](auto& options) { options.options = &unknown, options.option_count = 1; }), "tunning");
    expect(error_with([](auto& options) { options.device = 0; }), "host memory only");
    expect(error_with([](auto& options) {
             options.allgather = [](void*, const void*, uint64_t, void*) -> ddprun_status { return DDPRUN_PEER_LOST; };
           }),
           "the allgather that the caller has given failed");
  });
  CHECK(failures(outcomes) == "");
}

TEST_CASE("the ranks compare their calls") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [](Rank& rank) {
    const auto group = join(options_of(rank, "shm"));
    std::vector<float> numbers(rank.rank() == 0 ? 4 : 5);
    require(allreduce(group, numbers) == DDPRUN_MISMATCH, "no mismatch");
    require(std::string(ddprun_error()).find("float32 x 5") != std::string::npos);
    require(allreduce(group, numbers) == DDPRUN_MISMATCH, "the group has forgotten its failure");
    require(ddprun_group_failure(group.get()) == DDPRUN_MISMATCH, "the group has forgotten its failure");
  });
  CHECK(failures(outcomes) == "");
}

TEST_CASE("a rank that ends is an error of the others at once, and stays the first cause") {
  for (const char* backend : {"shm", "gloo", "ucx"}) {
    CAPTURE(backend);
    const auto outcomes = run_ranks(3, As::processes, kDeadline, [&](Rank& rank) {
      const auto group = join(options_of(rank, backend));
      std::vector<float> numbers(10, 1);
      require(allreduce(group, numbers) == DDPRUN_OK);
      if (rank.rank() == 1) ::raise(SIGKILL);
      const auto begin = testing::Clock::now();
      require(allreduce(group, numbers) == DDPRUN_PEER_LOST, "not lost");
      const std::string first = ddprun_error();
      require(first.find("rank 1") != std::string::npos, first);
      require(testing::Clock::now() - begin < 5s, "the failure took too long");
      require(allreduce(group, numbers) == DDPRUN_PEER_LOST && ddprun_error() == first);
    });
    for (const int survivor : {0, 2}) CHECK_MESSAGE(outcomes[survivor].ok(), outcomes[survivor].describe());
  }
}

TEST_CASE("a process that a rank has forked destroys nothing") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [](Rank& rank) {
    auto group = join(options_of(rank, "shm"));
    const pid_t child = ::fork();
    if (child == 0) {
      group.reset();
      ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    require(status == 0, "the child ended badly");
    std::vector<float> numbers{1};
    require(allreduce(group, numbers) == DDPRUN_OK);
  });
  CHECK(failures(outcomes) == "");
}

TEST_CASE("memory of a plugin holds buffers") {
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [](Rank& rank) {
    const auto group = join(options_of(rank, "shm"));
    void* memory = nullptr;
    require(ddprun_alloc(group.get(), 1 << 20, &memory) == DDPRUN_OK);
    auto* const numbers = static_cast<float*>(memory);
    numbers[0] = numbers[200'000] = 2;
    ddprun_collective call{};
    call.struct_size = sizeof call;
    call.dtype = DDPRUN_FLOAT32;
    call.send = call.recv = numbers;
    call.count = 1 << 18;
    const auto work = start(group.get(), DDPRUN_ALLREDUCE, {call});
    require(finish(work) == DDPRUN_OK);
    ddprun_comm_execution execution{sizeof execution, 0, nullptr, nullptr};
    ddprun_result(work.get(), &execution);
    require(execution.algorithm == std::string("direct"), execution.algorithm);
    require(numbers[0] == 4 && numbers[200'000] == 4, "wrong sums");
    ddprun_free(group.get(), memory);
  });
  CHECK(failures(outcomes) == "");
}

TEST_CASE("the last collectives are written into a file") {
  const testing::TempDir folder;
  const auto outcomes = run_ranks(2, As::processes, kDeadline, [&](Rank& rank) {
    const auto group = join(options_of(rank, "shm"));
    std::vector<float> numbers(77);
    require(allreduce(group, numbers) == DDPRUN_OK);
    const std::string path = folder.path().string();
    require(ddprun_group_write_collectives(group.get(), path.c_str(), "a test") == DDPRUN_OK);
    require(ddprun_group_write_collectives(group.get(), "/no such folder", "a test") != DDPRUN_OK, "written");
  });
  CHECK(failures(outcomes) == "");
  std::ostringstream text;
  text << std::ifstream(folder.path() / "collectives-rank1.json").rdbuf();
  CHECK(text.str().find("\"count\":77") != std::string::npos);
}

}  // namespace
}  // namespace ddprun::c
