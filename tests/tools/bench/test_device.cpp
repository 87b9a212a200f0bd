// `ddprun bench` on fake GPUs (tests/fakes/cuda), with backends for CUDA memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "launch/free_port.hpp"
#include "support/paths.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "testing/ranks.hpp"
#include "tools/bench/command.hpp"

namespace ddprun::bench {
namespace {

using namespace testing;
using nlohmann::json;

const std::string kGpuFakes = testing::build_dir() + "/tests/fakes/gpu";

ProcessResult run(const Place& place, std::vector<std::string> arguments, const std::string& gpus = "2") {
  arguments.insert(arguments.end(), {"--plugin-path", kGpuFakes});
  return place.run(std::move(arguments),
                   {"LD_LIBRARY_PATH=" + testing::build_dir() + "/tests/fakes/cuda", "DDPRUN_FAKE_GPUS=" + gpus});
}

TEST_CASE("every collective is checked on a GPU, and the device is in the records") {
  const Place place;
  const auto result = run(place, quick({"--device", "cuda", "--backend", "good_gpu", "--collective",
                                        "allreduce,broadcast,allgather,reduce_scatter", "--json", place.file("json")}));
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, "# gpu.0 Fake GPU 0, 8192 MiB\n# gpu.1 Fake GPU 1, 16384 MiB\n"));
  CHECK(contains(result.out, "# driver for CUDA 13.0\n"));
  CHECK(contains(result.out, "buffers on device cuda;"));
  const auto rows = rows_of(result.out);
  CHECK(rows.size() == 3 * (2 + 1 + 2 + 2));
  for (const auto& row : rows) {
    REQUIRE(row.size() == 15);
    CHECK(row[7] == "cuda");
    CHECK(row[14] == "0");
  }
  const json document = json::parse(read_file(place.file("json")));
  CHECK(document.at("settings").at("device") == "cuda");
  for (const json& row : document.at("rows")) {
    CHECK(row.at("device") == "cuda");
    for (const json& round : row.at("rounds")) CHECK(round.at("batch") == 20);
  }
  CHECK(place.is_clean());
}

// Only if the build has comm_ucx (tests/tools/bench/CMakeLists.txt).
TEST_CASE("ucx is measured on GPUs with the algorithms that support CUDA memory") {
  const std::string ucx = DDPRUN_UCX, fakes = testing::build_dir() + "/tests/fakes/cuda";
  if (ucx.empty()) {
    MESSAGE("skipped: this build has no comm_ucx, or has sanitizers, with which nothing can be preloaded");
    return;
  }
  const Place place;
  const std::vector<std::string> fake = {"LD_LIBRARY_PATH=" + fakes, "LD_PRELOAD=" + fakes + "/libfake_ucx_cuda.so",
                                         "UCX_MODULES=^cuda"};
  const auto result = place.run(
      quick({"--device", "cuda", "--backend", ucx, "--algorithm", "ring,tree", "--collective", "allreduce"}), fake);
  REQUIRE_MESSAGE(result.code == 0, result.err);
  const auto rows = rows_of(result.out);
  CHECK(rows.size() == 2 * 3 * 2);
  for (const auto& row : rows) CHECK(row.at(14) == "0");
  const auto refused = place.run(quick({"--device", "cuda", "--backend", ucx, "--algorithm", "hierarchical"}), fake);
  CHECK(refused.code == 2);
  CHECK_MESSAGE(contains(refused.err, "ucx: takes host memory only, and the buffers are on a GPU: expected \"auto\""),
                refused.err);
  CHECK(place.run(quick({"--device", "cuda", "--backend", ucx, "--tune", place.file("table")}), fake).code == 0);
  CHECK(contains(read_file(place.file("table")), "ucx 2 max "));
  CHECK(place.is_clean());
}

TEST_CASE("a wrong result on a GPU is detected") {
  const auto result = run(Place(), quick({"--device", "cuda", "--backend", "off_by_one_gpu"}));
  CHECK(result.code == 6);
  for (const auto& row : rows_of(result.out)) CHECK(row[14] == "4");
}

TEST_CASE("--devices sets the GPU of each rank, and several ranks can use one GPU") {
  const Place place;
  const auto result =
      run(place, quick({"--device", "cuda", "--devices", "1,1,1", "--ranks", "3", "--backend", "good_gpu"}));
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, "# gpu.1 Fake GPU 1"));
  CHECK_FALSE(contains(result.out, "# gpu.0"));
}

TEST_CASE("with one rank on each of two hosts, both use GPU 0") {
  const Place place;
  const launch::testing::FreePort held(true);
  const std::string port = "MASTER_PORT=" + std::to_string(held.number);
  const auto body = [&](Rank& rank) {
    std::vector<std::string> arguments = quick({"--device", "cuda", "--backend", "good_gpu"});
    arguments.insert(arguments.end(), {"--plugin-path", kGpuFakes});
    const auto result =
        place.run(arguments, {"LD_LIBRARY_PATH=" + testing::build_dir() + "/tests/fakes/cuda", "DDPRUN_FAKE_GPUS=1",
                              "WORLD_SIZE=2", "RANK=" + std::to_string(rank.rank()), "LOCAL_RANK=0",
                              "LOCAL_WORLD_SIZE=1", "MASTER_ADDR=127.0.0.1", port});
    if (result.code != 0) throw std::runtime_error(result.err);
    rank.report(result.out);
  };
  const auto outcomes = run_ranks(2, As::processes, std::chrono::seconds(100), body);
  REQUIRE(failures(outcomes) == "");
  const std::string& out = outcomes[0].records.at(0);
  CHECK(contains(out, "# gpu.0 Fake GPU 0"));
  CHECK(contains(out, "# allreduce, 2 ranks"));
  for (const auto& row : rows_of(out)) CHECK(row[14] == "0");
}

TEST_CASE("a request that the machine or the backend cannot serve is one line, and starts nothing") {
  const Place place;
  const auto refused = [&](std::vector<std::string> arguments, int code, const std::string& expected,
                           const std::string& gpus = "2") {
    const auto result = run(place, std::move(arguments), gpus);
    CHECK(result.code == code);
    CHECK(result.out.empty());
    CHECK_MESSAGE(contains(result.err, expected), result.err);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  };
  refused({"--device", "gpu"}, 2, "--device gpu: expected \"cpu\" or \"cuda\"");
  refused({"--devices", "0,0"}, 2, "--devices 0,0: expected --device cuda as well");
  refused({"--device", "cuda"}, 3, "gloo does not support CUDA memory: use --device cpu");
  refused({"--backend", "good_gpu"}, 3, "good_gpu does not support host memory: use --device cuda");
  refused({"--device", "cuda", "--backend", "good_gpu", "--ranks", "2,3"}, 3,
          "the 3 ranks of this host need GPUs up to 2, counted from 0, and this machine has 2: name the GPU");
  refused({"--device", "cuda", "--backend", "good_gpu", "--devices", "0"}, 2,
          "--devices 0: expected a GPU for each of 2 ranks");
  refused({"--device", "cuda", "--backend", "good_gpu", "--devices", "0,5"}, 3,
          "need GPUs up to 5, counted from 0, and this machine has 2");
  refused({"--device", "cuda", "--backend", "good_gpu"}, 3, "--device cuda: an NVIDIA driver, but no device", "0");
  CHECK(place.is_clean());
}

}  // namespace
}  // namespace ddprun::bench
