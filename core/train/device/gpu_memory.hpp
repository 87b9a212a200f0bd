// The memory of a GPU that LibTorch's allocator uses.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace ddprun::train {

// Peaks since reset_peak_memory(), in bytes, of this process; -1 with a LibTorch before 2.9, which does not report
// them.
struct GpuMemory {
  int64_t allocated = -1;  // by tensors
  int64_t reserved = -1;   // reserved on the GPU, including memory cached for later tensors
};

GpuMemory peak_memory(torch::Device gpu);
void reset_peak_memory(torch::Device gpu);

// Waits for the GPU and frees the memory that is cached for later tensors. Does nothing with a LibTorch before 2.9.
void release_spare_memory(torch::Device gpu);

}  // namespace ddprun::train
