// Missing parts on a rank with a GPU, and failures of the GPU. The GPU is a fake (tests/fakes/cuda).
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "plugins/comm_ucx/choice.hpp"
#include "plugins/comm_ucx/communicator.hpp"
#include "plugins/comm_ucx/gpu.hpp"
#include "plugins/comm_ucx/on_fake_gpu.hpp"
#include "plugins/rank_host.hpp"

using ddprun::CommStatus;
using ddprun::DType;
using ddprun::Memory;
using ddprun::Op;

using namespace ddprun;
using namespace ddprun::testing;
using std::chrono::seconds;
using ucx_backend::kOptions;
using ucx_backend::UcxCommunicator;

namespace {

bool nvrtc_is_missing = false;

}  // namespace

// comm_ucx opens NVRTC with this function.
extern "C" void* dlopen(const char* name, int flags) noexcept {
  static auto* const behind = reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"));
  if (nvrtc_is_missing && name != nullptr && std::strstr(name, "libnvrtc") != nullptr) return nullptr;
  return behind(name, flags);
}

namespace {

// What body() throws on each rank, each in a separate process: "2 text", or "".
std::vector<std::string> errors_of(int ranks, const std::function<void(Rank&)>& body) {
  const auto outcomes = run_ranks(ranks, As::processes, seconds(60), [&](Rank& rank) {
    try {
      body(rank);
    } catch (const CommError& failure) {
      rank.report(name_of(failure.status()) + " " + failure.what());
    }
    rank.meet();
  });
  CHECK(failures(outcomes) == "");
  std::vector<std::string> errors;
  for (const auto& outcome : outcomes) errors.push_back(outcome.records.empty() ? "" : outcome.records[0]);
  return errors;
}

void join(Rank& rank, int device = 0) {
  RankHost host(rank, "auto", 20'000, device);
  UcxCommunicator communicator(host.host(kOptions));
}

// Two allreduces of a rank on its fake GPU, whose memory is host memory. The second one fails on rank `who`.
// deadline_ms is the deadline of that rank.
void reduce_on_gpu(Rank& rank, int who, const std::string& fails, uint32_t deadline_ms) {
  std::vector<float> vector(1000, 1.0f);  // outlives what a GPU may still do
  RankHost host(rank, "ring", rank.rank() == who ? deadline_ms : 20'000, rank.rank());
  UcxCommunicator communicator(host.host(kOptions));
  auto call = allreduce_of(DType::float32, Op::sum, vector.data(), vector.data(), vector.size());
  call.memory = Memory::cuda;
  communicator.allreduce(call);
  if (vector != std::vector<float>(1000, static_cast<float>(rank.size()))) throw std::runtime_error("wrong sum");
  if (rank.rank() == who) setenv("DDPRUN_FAKE_CU_FAILS", fails.c_str(), 1);
  rank.meet();
  communicator.allreduce(call);
}

}  // namespace

TEST_CASE("the error names a missing NVRTC, and what to do") {
  const auto errors = errors_of(1, [](Rank& rank) {
    nvrtc_is_missing = true;
    join(rank);
  });
  CHECK_MESSAGE(errors[0].starts_with(name_of(CommStatus::unsupported) +
                                      " no NVRTC, which compiles the kernel for a GPU: neither libnvrtc.so.13 nor /"),
                errors[0]);
  CHECK_MESSAGE(errors[0].ends_with("comm.stage_through_host = true works without it"), errors[0]);
}

TEST_CASE("if NVRTC does not compile the kernel, the error has NVRTC's message") {
  const auto errors = errors_of(1, [](Rank& rank) {
    setenv("DDPRUN_FAKE_NVRTC_FAILS", "1", 1);
    join(rank);
  });
  CHECK_MESSAGE(errors[0].starts_with(name_of(CommStatus::unsupported) +
                                      " NVRTC cannot compile for sm_90: NVRTC_ERROR_COMPILATION: kernel.cu(1): error: "
                                      "this is not what the fake driver runs; "),
                errors[0]);
}

TEST_CASE("a UCX without CUDA memory is reported before anything is sent") {
  for (const std::string& error : errors_of(2, [](Rank& rank) {
         setenv("DDPRUN_FAKE_UCX_WITHOUT_CUDA", "1", 1);
         join(rank, rank.rank());
       })) {
    CHECK_MESSAGE(error.starts_with(name_of(CommStatus::unsupported) + " UCX takes no CUDA memory with tls = \""),
                  error);
    CHECK_MESSAGE(error.find("; comm.stage_through_host = true works without it") != std::string::npos, error);
  }
}

TEST_CASE("a missing driver, a missing device and too little GPU memory are reported") {
  CHECK(errors_of(1, [](Rank& rank) {
          setenv("DDPRUN_FAKE_CUINIT", "999", 1);
          join(rank);
        })[0] == name_of(CommStatus::unsupported) + " the NVIDIA driver cannot start: unknown error (999)");
  CHECK(errors_of(1, [](Rank& rank) { join(rank, 7); })[0] ==
        name_of(CommStatus::internal) + " CUDA: device 7: unknown error (101)");
  CHECK(errors_of(1, [](Rank& rank) {
          setenv("DDPRUN_FAKE_GPU_MIB", "8", 1);
          join(rank);
        })[0] == name_of(CommStatus::no_memory) + " CUDA: memory for received segments: unknown error (2)");
}

TEST_CASE("GPU memory is refused if the communicator was created for host memory") {
  const auto errors = errors_of(1, [](Rank& rank) {
    RankHost host(rank, "auto", 20'000);
    UcxCommunicator communicator(host.host(kOptions));
    float one = 1;
    auto call = allreduce_of(DType::float32, Op::sum, &one, &one, 1);
    call.memory = Memory::cuda;
    communicator.allreduce(call);
  });
  CHECK(errors[0].starts_with(name_of(CommStatus::unsupported) + " GPU memory"));
}

TEST_CASE("a GPU's failure ends the collective on its rank, and the other ranks name that rank") {
  for (const std::string call : {"cuLaunchKernel", "cuStreamQuery"}) {
    CAPTURE(call);
    const auto errors = errors_of(3, [&](Rank& rank) { reduce_on_gpu(rank, 1, call + ":719", 20'000); });
    CHECK_MESSAGE(errors[1].starts_with(name_of(CommStatus::internal) + " CUDA: "), errors[1]);
    CHECK_MESSAGE(errors[1].ends_with("(719)"), errors[1]);
    for (const int other : {0, 2}) {
      CHECK_MESSAGE(errors[other].starts_with(name_of(CommStatus::peer_lost)), errors[other]);
      CHECK_MESSAGE(errors[other].find("rank 1") != std::string::npos, errors[other]);
    }
  }
}

TEST_CASE("a GPU that never completes its work runs into the deadline, and the error says so") {
  const auto errors = errors_of(2, [](Rank& rank) { reduce_on_gpu(rank, 0, "cuStreamQuery:600", 2000); });
  CHECK(errors[0] == name_of(CommStatus::timeout) + " waited for the GPU to end reducing for 2000 ms");
  CHECK_MESSAGE(errors[1].starts_with(name_of(CommStatus::peer_lost)), errors[1]);
}
