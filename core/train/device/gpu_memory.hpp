// The memory of a GPU that LibTorch's allocator has taken.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace ddprun::train {

// The most bytes at any time since reset_peak_memory(), of this process; -1 under a LibTorch before 2.9, which does not
// tell.
struct GpuMemory {
  int64_t allocated = -1;  // by tensors
  int64_t reserved = -1;   // taken from the GPU, with what is kept for later tensors
};

GpuMemory peak_memory(torch::Device gpu);
void reset_peak_memory(torch::Device gpu);

// Waits for the GPU and gives back what is kept for later tensors. A LibTorch before 2.9 keeps it.
void release_spare_memory(torch::Device gpu);

}  // namespace ddprun::train
