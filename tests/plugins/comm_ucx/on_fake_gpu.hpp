// A fake GPU (tests/fakes/cuda) for the classes of comm_ucx, without a second rank and without UCX.
#pragma once

#include <optional>

#include "ddprun/plugin/comm_plugin.hpp"
#include "plugins/comm_ucx/choice.hpp"
#include "plugins/comm_ucx/gpu_space.hpp"
#include "plugins/comm_ucx/messages.hpp"

namespace ddprun::testing {

class AloneOnGpu {
 public:
  explicit AloneOnGpu(uint32_t deadline_ms = 20'000) : gpu_(0), here_(&gpu_), messages_(host(deadline_ms)) {
    messages_.begin("a test");
    space_.emplace(gpu_, messages_);
  }
  ucx_backend::MemorySpace& space() { return *space_; }

 private:
  static Host host(uint32_t deadline_ms) {
    static const int32_t not_aborted = 0;
    ddprun_comm_host host = {};
    host.struct_size = sizeof host;
    host.size = 1;
    host.deadline_ms = deadline_ms;
    host.algorithm = "auto";
    host.abort_flag = &not_aborted;
    host.log = [](void*, int32_t, const char*) {};
    host.allgather = [](void*, const void* send, uint64_t bytes, void* recv) -> ddprun_status {
      std::copy_n(static_cast<const char*>(send), bytes, static_cast<char*>(recv));
      return DDPRUN_OK;
    };
    return Host(host, {}, {}, ucx_backend::kOptions);
  }

  const ucx_backend::Gpu gpu_;
  const ucx_backend::OnGpu here_;
  ucx_backend::Messages messages_;
  std::optional<ucx_backend::GpuSpace> space_;
};

}  // namespace ddprun::testing
