// A collective under way, and the events between which it is on the GPU.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <optional>

#include "ddprun/plugin/comm_plugin.hpp"
#include "failures.hpp"

namespace ddprun::nccl_backend {

using Clock = std::chrono::steady_clock;

class Event {
 public:
  Event() { check("an event", cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const noexcept { return event_; }

  // cudaSuccess once the GPU has come by, cudaErrorNotReady before: which is no error, and must not stay behind as the
  // thread's last one.
  cudaError_t state() const noexcept {
    const cudaError_t result = cudaEventQuery(event_);
    if (result == cudaErrorNotReady) cudaGetLastError();
    return result;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// The request of a collective. Used again and again: a step creates no event.
struct InflightOp : Request {
  Event ready;  // on the caller's stream: what it has queued before
  Event done;   // on our stream: the collective
  const char* name = "";
  cudaStream_t stream = nullptr;  // the caller's
  bool is_barrier = false;        // which is not on any stream of the caller
  // Recorded into a CUDA graph: nobody may ask its events, and what each replay comes to is the caller's to see.
  bool is_captured = false;
  bool is_waited = false;
  bool has_ended = false;
  std::optional<Clock::time_point> begun;  // when the GPU came to it: from then its deadline counts
};

}  // namespace ddprun::nccl_backend
