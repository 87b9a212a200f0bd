// Looks at a rank's GPUs now and then, for the records.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "cuda/nvml.hpp"
#include "record/recorder.hpp"

namespace ddprun::run {

// One thread. The recorder must outlive it.
class GpuWatch {
 public:
  // CUDA devices, all of this rank. Peaks of memory count from here on.
  GpuWatch(std::vector<torch::Device> gpus, record::Recorder& recorder);

  // Records what each of them is at. Takes about a millisecond for each, and does not wait for them.
  void look(int64_t step);

 private:
  struct Watched {
    torch::Device device;
    std::string bus_id;
  };

  std::vector<Watched> gpus_;
  const cuda::Nvml nvml_;
  record::Recorder& recorder_;
};

}  // namespace ddprun::run
