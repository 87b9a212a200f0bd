// A backend that adds the memory kind that another backend does not support, by copying.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <memory>

#include "ddprun/comm_backend.hpp"

namespace ddprun::train {

// Returns `inner` itself if it supports host and stream-ordered CUDA memory. Otherwise returns a backend that calls
// `inner` directly for memory that `inner` supports, and copies the rest: host values through memory of the GPU
// `device` (for a backend of CUDA memory only), GPU tensors through page-locked host memory (for a backend of host
// memory only). If `inner` is blocking and supports CUDA memory, the calling thread first waits for its current stream.
// A copied collective has finished when its call returns, or throws; each call of the inner backend may take at most
// `timeout`. For a CUDA buffer it waits for the calling thread's current stream, which must be the buffer's stream. For
// a host buffer it waits only for earlier collectives on the GPU. Throws as `inner` does.
std::unique_ptr<CommBackend> staged(std::unique_ptr<CommBackend> inner, torch::Device device,
                                    std::chrono::milliseconds timeout);

}  // namespace ddprun::train
