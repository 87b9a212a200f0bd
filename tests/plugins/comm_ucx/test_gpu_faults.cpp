// What is missing where a rank has a GPU, and what fails on it. The GPU is tests/fakes/cuda's.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "plugins/comm_ucx/communicator.hpp"
#include "plugins/comm_ucx/compiler.hpp"
#include "plugins/comm_ucx/on_fake_gpu.hpp"
#include "plugins/comm_ucx/rank_host.hpp"

using ddprun::CommStatus;
using ddprun::DType;
using ddprun::Memory;
using ddprun::Op;

using namespace ddprun;
using namespace ddprun::testing;
using std::chrono::seconds;
using ucx_backend::UcxCommunicator;

namespace {

bool nvrtc_is_missing = false;

}  // namespace

// comm_ucx opens NVRTC with this one.
extern "C" void* dlopen(const char* name, int flags) noexcept {
  static auto* const behind = reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"));
  if (nvrtc_is_missing && name != nullptr && std::strstr(name, "libnvrtc") != nullptr) return nullptr;
  return behind(name, flags);
}

namespace {

// What body() throws on each rank, in a process of its own each: "2 text", or "".
std::vector<std::string> faults_of(int ranks, const std::function<void(Rank&)>& body) {
  const auto outcomes = run_ranks(ranks, As::processes, seconds(60), [&](Rank& rank) {
    try {
      body(rank);
    } catch (const CommError& failure) {
      rank.report(name_of(failure.status()) + " " + failure.what());
    }
    rank.meet();
  });
  CHECK(failures(outcomes) == "");
  std::vector<std::string> faults;
  for (const auto& outcome : outcomes) faults.push_back(outcome.records.empty() ? "" : outcome.records[0]);
  return faults;
}

void join(Rank& rank, int device = 0) {
  RankHost host(rank, "auto", 20'000, device);
  UcxCommunicator communicator(host.host());
}

// Allreduces of a rank on its GPU, whose memory is the host's, the second of which fails on rank `who`. The deadline is
// that rank's.
void reduce_on_gpu(Rank& rank, int who, const std::string& fails, uint32_t deadline_ms) {
  std::vector<float> vector(1000, 1.0f);  // outlives what a GPU may still do
  RankHost host(rank, "ring", rank.rank() == who ? deadline_ms : 20'000, rank.rank());
  UcxCommunicator communicator(host.host());
  auto call = allreduce_of(DType::float32, Op::sum, vector.data(), vector.data(), vector.size());
  call.memory = Memory::cuda;
  communicator.allreduce(call);
  if (vector != std::vector<float>(1000, static_cast<float>(rank.size()))) throw std::runtime_error("wrong sum");
  if (rank.rank() == who) setenv("DDPRUN_FAKE_CU_FAILS", fails.c_str(), 1);
  rank.meet();
  communicator.allreduce(call);
}

}  // namespace

TEST_CASE("NVRTC that is missing is named, with what to do") {
  const auto faults = faults_of(1, [](Rank& rank) {
    nvrtc_is_missing = true;
    join(rank);
  });
  CHECK_MESSAGE(faults[0].starts_with(name_of(CommStatus::unsupported) +
                                      " no NVRTC, which compiles what reduces on a GPU: neither libnvrtc.so.13 nor /"),
                faults[0]);
  CHECK_MESSAGE(faults[0].ends_with("comm.stage_through_host = true does without it"), faults[0]);
}

TEST_CASE("a kernel that NVRTC does not compile is told of in its words") {
  const auto faults = faults_of(1, [](Rank& rank) {
    setenv("DDPRUN_FAKE_NVRTC_FAILS", "1", 1);
    join(rank);
  });
  CHECK_MESSAGE(faults[0].starts_with(name_of(CommStatus::unsupported) +
                                      " NVRTC cannot compile for sm_90: NVRTC_ERROR_COMPILATION: kernel.cu(1): error: "
                                      "this is not what the fake driver runs; "),
                faults[0]);
}

TEST_CASE("a UCX that takes no CUDA memory is told of before anything is sent") {
  for (const std::string& fault : faults_of(2, [](Rank& rank) {
         setenv("DDPRUN_FAKE_UCX_WITHOUT_CUDA", "1", 1);
         join(rank, rank.rank());
       })) {
    CHECK_MESSAGE(fault.starts_with(name_of(CommStatus::unsupported) + " UCX takes no CUDA memory with tls = \""),
                  fault);
    CHECK_MESSAGE(fault.find("; comm.stage_through_host = true does without") != std::string::npos, fault);
  }
}

TEST_CASE("no driver, no such device, and memory that the GPU has not are told of") {
  CHECK(faults_of(1, [](Rank& rank) {
          setenv("DDPRUN_FAKE_CUINIT", "999", 1);
          join(rank);
        })[0] == name_of(CommStatus::unsupported) + " the NVIDIA driver cannot start: unknown error (999)");
  CHECK(faults_of(1, [](Rank& rank) { join(rank, 7); })[0] ==
        name_of(CommStatus::internal) + " CUDA: device 7: unknown error (101)");
  CHECK(faults_of(1, [](Rank& rank) {
          setenv("DDPRUN_FAKE_GPU_MIB", "8", 1);
          join(rank);
        })[0] == name_of(CommStatus::no_memory) + " CUDA: memory for what arrives: unknown error (2)");
}

TEST_CASE("memory of a GPU is refused where the communicator was made for the host's") {
  const auto faults = faults_of(1, [](Rank& rank) {
    RankHost host(rank, "auto", 20'000);
    UcxCommunicator communicator(host.host());
    float one = 1;
    auto call = allreduce_of(DType::float32, Op::sum, &one, &one, 1);
    call.memory = Memory::cuda;
    communicator.allreduce(call);
  });
  CHECK(faults[0].starts_with(name_of(CommStatus::unsupported) + " memory of a GPU"));
}

TEST_CASE("a GPU that fails ends the collective on its rank, and the others name that one") {
  for (const std::string call : {"cuLaunchKernel", "cuStreamQuery"}) {
    CAPTURE(call);
    const auto faults = faults_of(3, [&](Rank& rank) { reduce_on_gpu(rank, 1, call + ":719", 20'000); });
    CHECK_MESSAGE(faults[1].starts_with(name_of(CommStatus::internal) + " CUDA: "), faults[1]);
    CHECK_MESSAGE(faults[1].ends_with("(719)"), faults[1]);
    for (const int other : {0, 2}) {
      CHECK_MESSAGE(faults[other].starts_with(name_of(CommStatus::peer_lost)), faults[other]);
      CHECK_MESSAGE(faults[other].find("rank 1") != std::string::npos, faults[other]);
    }
  }
}

TEST_CASE("a GPU that never ends what it was given runs into the deadline, which says so") {
  const auto faults = faults_of(2, [](Rank& rank) { reduce_on_gpu(rank, 0, "cuStreamQuery:600", 2000); });
  CHECK(faults[0] == name_of(CommStatus::timeout) + " waited for the GPU to end reducing for 2000 ms");
  CHECK_MESSAGE(faults[1].starts_with(name_of(CommStatus::peer_lost)), faults[1]);
}
