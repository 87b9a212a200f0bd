// A collective in flight, and the events before and after it on the GPU.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <optional>

#include "ddprun/plugin/comm_plugin.hpp"
#include "device.hpp"

namespace ddprun::nccl_backend {

using Clock = std::chrono::steady_clock;

class Event {
 public:
  Event() { check("an event", cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const noexcept { return event_; }

  // cudaSuccess once the GPU has reached the event, cudaErrorNotReady before. The latter is not an error and must not
  // stay as the thread's last CUDA error.
  cudaError_t state() const noexcept {
    const cudaError_t result = cudaEventQuery(event_);
    if (result == cudaErrorNotReady) cudaGetLastError();
    return result;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// The request of a collective. Reused, so that a step creates no event.
struct InflightOp : Request {
  Event ready;  // on the caller's stream, after its earlier work
  Event done;   // on our stream, after the collective
  const char* name = "";
  cudaStream_t stream = nullptr;  // the caller's
  bool is_barrier = false;        // a barrier is not on the caller's stream
  bool is_waited = false;
  bool has_ended = false;
  std::optional<Clock::time_point> begun;  // when the GPU reached it; the deadline counts from then
};

}  // namespace ddprun::nccl_backend
