// The settings and the call record of the fake libraries: one object per process, in the fake CUDA runtime.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "fakes/cuda/machine.hpp"

namespace ddprun::testing {

struct Fake {
  std::atomic<int> driver{fake_driver()};
  std::atomic<int> runtime{13000};
  std::atomic<int> devices{static_cast<int>(fake_gpus().size())};
  std::atomic<bool> gpu_hangs{false};  // no event of a stream completes before ncclCommAbort
  std::atomic<int> nccl{22809};
  std::atomic<int> turns{0};        // polls until an NCCL call has completed; -1: never
  std::atomic<int> async_error{0};  // ncclResult_t if nothing is in progress
  std::atomic<bool> destroy_hangs{false};
  std::atomic<bool> alone{false};  // the test plays the other ranks: NCCL moves nothing

  std::mutex mutex;     // of the members below
  std::string failing;  // the NCCL call that fails,
  int result = 0;       // with this ncclResult_t
  std::string message;  // of ncclGetLastError
  std::vector<std::string> calls;

  void record(std::string call) {
    const std::lock_guard lock(mutex);
    calls.push_back(std::move(call));
  }
};

}  // namespace ddprun::testing

extern "C" ddprun::testing::Fake* ddprun_fake();
