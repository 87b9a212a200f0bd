// Training on GPUs over comm_ucx, which uses their memory directly or through the host. The GPUs are fake: for UCX
// their memory is host memory, and the kernel that adds runs on the CPU.
#include "e2e/gpu_runs.hpp"
#include "support/paths.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

const Settings kUcx = {"strategy.kind=ddp", "launch.nproc=2", "comm.backend=ucx"};
const Settings kStaged = {"comm.stage_through_host=true"};

// A UCX that reports CUDA support; its real CUDA modules would find the fake driver.
Settings cuda_aware() {
  const std::string fakes = build_dir() + "/tests/fakes/cuda";
  return {"LD_PRELOAD=" + fakes + "/libcudart.so.13:" + fakes + "/libfake_ucx_cuda.so", "UCX_MODULES=^cuda"};
}

Trained on_gpus(Runs& runs, const Settings& settings) {
  return runs.on_gpus(kUcx + settings, 2, cuda_aware());
}

void check_equal(const Trained& one, const Trained& other) {
  CHECK(distance(one.losses, other.losses) == 0);
  CHECK((one.weights == other.weights));
}

TEST_CASE("GPU memory directly, through the host, and on two CPUs gives bitwise equal results") {
  Runs runs(kSimplenet);
  const Trained cpu = runs.on_cpu(kUcx, 2);
  const Trained staged = on_gpus(runs, kStaged);
  CHECK(contains(staged.summary.at("transport"), "via host"));
  check_equal(staged, cpu);
  for (const std::string algorithm : {"auto", "ring", "tree", "halving_doubling"}) {
    CAPTURE(algorithm);
    Runs here(kSimplenet);  // so that the records are of this run only
    const Trained direct = on_gpus(here, {"comm.algorithm=" + algorithm});
    CHECK_FALSE(contains(direct.summary.at("transport"), "via host"));
    if (algorithm != "auto") CHECK(direct.summary.at("algorithm") == algorithm);
    check_equal(direct, cpu);
    int ranks = 0;
    for (const std::string& record : here.records()) {
      ranks += contains(record, "the kernel reduces");
      CHECK_FALSE(contains(record, "race"));
    }
    CHECK(ranks == 2);
  }
}

TEST_CASE("hierarchical is refused on GPUs before a rank starts, and serves them through the host") {
  Runs runs(kSimplenet);
  const Settings hierarchical = {"comm.algorithm=hierarchical"};
  const auto refused = runs.start_on_gpus(kUcx + hierarchical, cuda_aware());
  CHECK(refused.code == 2);
  CHECK_MESSAGE(
      contains(last_line(refused.err),
               "--set comm.algorithm=hierarchical: comm.algorithm = \"hierarchical\": takes host memory only, "
               "and the buffers are on a GPU: expected \"auto\", \"ring\", \"tree\" or \"halving_doubling\""),
      refused.err);
  CHECK(on_gpus(runs, hierarchical + kStaged).summary.at("algorithm") == "hierarchical");
}

TEST_CASE("a UCX without CUDA, or no working NVRTC, ends the run with 3 and what to do") {
  Runs runs(kSimplenet);
  for (const std::string missing : {"DDPRUN_FAKE_UCX_WITHOUT_CUDA=1", "DDPRUN_FAKE_NVRTC_FAILS=1"}) {
    CAPTURE(missing);
    const auto result = runs.start_on_gpus(kUcx, cuda_aware() + Settings{missing});
    CHECK(result.code == 3);
    CHECK_MESSAGE(contains(last_line(result.err), "comm.stage_through_host = true"), result.err);
    CHECK(runs.place().leftovers().empty());
  }
}

}  // namespace
