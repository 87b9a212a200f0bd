// How comm_nccl joins: NCCL's id, unsuitable machines, and what all ranks must agree about.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>

#include "plugins/comm_nccl/process.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::testing {
namespace {

constexpr char kJoining[] = "3: nccl: rank 0: joining 1 rank: unsupported: ";

TEST_CASE("all ranks join with the id that rank 0 creates; the communicator is non-blocking") {
  const auto outcomes = run_ranks(3, As::processes, std::chrono::seconds(30), [](Rank& rank) {
    Fake& state = fake();
    comm::JoinOptions options{.rank = rank.rank(), .size = 3, .device = rank.rank()};
    options.allgather = [&](std::string_view mine) {
      std::string all(mine.size() * 3, '\0');
      rank.allgather(mine.data(), mine.size(), all.data());
      std::vector<std::string> values;
      for (std::size_t i = 0; i < 3; ++i) values.push_back(all.substr(i * mine.size(), mine.size()));
      return values;
    };
    comm::join(nccl(), options);
    rank.report(std::to_string(getpid()));
    rank.report(calls(state));
  });
  REQUIRE(failures(outcomes) == "");
  for (int rank = 0; rank < 3; ++rank) {
    const std::string& text = outcomes[static_cast<std::size_t>(rank)].records.at(1);
    CAPTURE(text);
    CHECK((text.find("ncclGetUniqueId") != std::string::npos) == (rank == 0));
    CHECK(text.find("ncclCommInitRankConfig rank " + std::to_string(rank) + " of 3 id-of-" + outcomes[0].records.at(0) +
                    " blocking 0 NCCL_ALGO -\n") != std::string::npos);
    CHECK(text.find("cudaStreamCreate device " + std::to_string(rank)) != std::string::npos);
    CHECK(text.find("ncclCommFinalize\nncclCommDestroy\n") != std::string::npos);
  }
}

TEST_CASE("rank 0 reports why it has no id") {
  const std::string error = error_of_joining(
      [](Fake& state) {
        state.failing = "ncclGetUniqueId";
        state.result = 2;
        state.message = "Bootstrap : no socket interface found";
      },
      options_of(2));
  CHECK(
      error.starts_with("1: nccl: rank 0: joining 2 ranks: internal error: rank 0: making NCCL's id: NCCL: system "
                        "error: Bootstrap : no socket interface found; name a network interface"));
}

TEST_CASE("one line says that the driver, device or version is missing, and the exit code is 3") {
  struct Case {
    std::function<void(Fake&)> prepare;
    std::string error;
  };
  const Case cases[] = {
      {[](Fake& state) { state.driver = 0; },
       "no NVIDIA driver on this machine: NCCL needs one, and a GPU; on a CPU take launch.device = \"cpu\" with "
       "another "
       "backend"},
      {[](Fake& state) { state.driver = 12080; },
       "the NVIDIA driver is for CUDA 12.8, the runtime is 13.0: install a newer driver"},
      {[](Fake& state) { state.devices = 0; }, "an NVIDIA driver, but no device: NCCL needs a GPU"},
  };
  for (const Case& one : cases) CHECK(error_of_joining(one.prepare, options_of()) == kJoining + one.error);

  auto fourth = options_of();
  fourth.device = 3;
  CHECK(error_of_joining([](Fake& state) { state.devices = 1; }, fourth) ==
        std::string(kJoining) + "no device 3: CUDA has 1 device, and each rank needs one of its own");
  auto on_cpu = options_of();
  on_cpu.device = -1;
  CHECK(error_of_joining([](Fake&) {}, on_cpu) == "3: nccl: this backend takes CUDA memory only");
}

TEST_CASE("NCCL or a runtime of another major version is refused") {
  CHECK(error_of_joining([](Fake& state) { state.nccl = 30100; }, options_of())
            .starts_with(std::string(kJoining) + "NCCL is 3.1.0 (" DDPRUN_FAKE_NCCL "), comm_nccl was built with 2."));
  CHECK(error_of_joining([](Fake& state) { state.runtime = 12040; }, options_of())
            .starts_with(std::string(kJoining) + "the CUDA runtime is 12.4 (" DDPRUN_FAKE_CUDART
                                                 "), comm_nccl was built with 13."));
}

TEST_CASE("the error names a missing library") {
  const TempDir folder;
  const auto alone = folder.path() / "libddprun_comm_nccl.so";
  std::filesystem::copy_file(DDPRUN_NCCL, alone);
  const std::string error = run_in_subprocess(
      [&](Fake&) { return error_of([&] { comm::join(*plugin::Registry({}).comm(alone).table, options_of()); }); });
  CHECK(error.starts_with(std::string(kJoining) + "a library is missing: " +
                          (folder.path() / "libddprun_nccl_backend.so").string() + ": cannot open shared object file"));
}

TEST_CASE("two ranks on one GPU are refused, unless share_gpu says so") {
  auto options = options_of(2);
  options.allgather = [](std::string_view mine) { return std::vector<std::string>(2, std::string(mine)); };
  CHECK(error_of_joining([](Fake&) {}, options) ==
        "3: nccl: rank 0: joining 2 ranks: invalid: ranks 0 and 1 use one GPU (0000:01:00.0): give each one of its "
        "own; launch.nproc is at most the number of GPUs (for tests: comm.options.share_gpu = true)");
  options.options = {{"share_gpu", "true"}};
  CHECK(run_in_subprocess([&](Fake&) {
          const auto backend = comm::join(nccl(), options);
          return std::string(std::getenv("NCCL_HOSTID"));
        }) == "ddprun-rank-0");
}

TEST_CASE("ranks whose NCCL differs do not join") {
  auto options = options_of(2);
  const auto echo = options.allgather;
  options.allgather = [echo](std::string_view mine) {
    auto all = echo(mine);
    if (mine.starts_with("NCCL ")) all[1][9] = '7';
    return all;
  };
  CHECK(error_of_joining([](Fake&) {}, options) ==
        "4: nccl: rank 0: joining 2 ranks: mismatch: rank 1 has NCCL 22807, NCCL_ALGO \"\", rank 0 has NCCL 22809, "
        "NCCL_ALGO \"\"");
  // NCCL_ALGO in a rank's environment counts as well.
  options.allgather = [echo](std::string_view mine) {
    auto all = echo(mine);
    if (mine.starts_with("NCCL ")) all[1].replace(all[1].find("tree"), 4, "ring");
    return all;
  };
  CHECK(error_of_joining([](Fake&) { setenv("NCCL_ALGO", "tree", 1); }, options)
            .ends_with("rank 1 has NCCL 22809, NCCL_ALGO \"ring\", rank 0 has NCCL 22809, NCCL_ALGO \"tree\""));
}

TEST_CASE("two copies of NCCL in one process are refused") {
  const TempDir folder;
  const std::string copy = folder.path() / "libnccl.so.9";
  std::filesystem::copy_file(DDPRUN_FAKE_NCCL, copy);
  const std::string error = error_of_joining([&](Fake&) { dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL); }, options_of());
  CHECK_MESSAGE(error.find("unsupported: this process has two copies of NCCL, ") != std::string::npos, error);
  CHECK_MESSAGE(error.find(copy) != std::string::npos, error);
}

TEST_CASE("the plugin is listed without any of this") {
  CHECK(run_in_subprocess([](Fake& state) {
          state.driver = 0;
          const auto& table = nccl();
          return std::string(table.name) + " " + std::string(table.library).substr(0, 7) + calls(state);
        }) == "nccl nccl 2.");
}

}  // namespace
}  // namespace ddprun::testing
