// What the fake libraries are told and what they remember: one per process, in the fake CUDA runtime.
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
  std::atomic<bool> gpu_hangs{false};  // no event of a stream comes, until ncclCommAbort
  std::atomic<int> nccl{22809};
  std::atomic<int> turns{0};        // how often a call of NCCL is asked for until it has got on; -1: for ever
  std::atomic<int> async_error{0};  // ncclResult_t, when nothing is in progress
  std::atomic<bool> destroy_hangs{false};
  std::atomic<bool> alone{false};  // the other ranks are echoes of this one: NCCL moves nothing

  std::mutex mutex;      // what follows
  std::string failing;   // this call of NCCL fails,
  int result = 0;        // with this ncclResult_t
  std::string message;   // what ncclGetLastError says
  std::string reported;  // the algorithm that NCCL_DEBUG_FILE is told of; "nothing": none
  std::vector<std::string> calls;

  void record(std::string call) {
    const std::lock_guard lock(mutex);
    calls.push_back(std::move(call));
  }
};

}  // namespace ddprun::testing

extern "C" ddprun::testing::Fake* ddprun_fake();
