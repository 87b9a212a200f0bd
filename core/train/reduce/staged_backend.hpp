// A backend that also takes the memory that another one does not.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <memory>

#include "ddprun/comm_backend.hpp"

namespace ddprun::train {

// `inner` itself where it takes both, CUDA memory in the order of streams. Else serves what `inner` takes through
// `inner`, for a blocking backend of CUDA memory after waiting for the calling thread's current stream; the rest it
// copies there and back: values of the host over memory of the GPU `device` (for a backend of CUDA memory alone),
// tensors of the GPU over page-locked memory of the host (for one of host memory alone). Such a collective has ended
// when its call returns, well or with an error: it takes at most `timeout` for each of the inner backend's calls. For
// CUDA buffers it waits for the calling thread's current stream, which has to be the buffer's; host buffers wait for
// nothing that the GPU has to do but earlier collectives. Throws as `inner` does.
std::unique_ptr<CommBackend> staged(std::unique_ptr<CommBackend> inner, torch::Device device,
                                          std::chrono::milliseconds timeout);

}  // namespace ddprun::train
