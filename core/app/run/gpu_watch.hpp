// GpuWatch: records now and then what a rank's GPUs are doing.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "cuda/nvml.hpp"
#include "record/recorder.hpp"
#include "train/loop/callback.hpp"

namespace ddprun::run {

// With each line of the log. A look takes about a millisecond for each GPU, and does not wait for it.
class GpuWatch final : public train::Callback {
 public:
  // CUDA devices, all of this rank. Peaks of memory count from here on. The recorder must outlive it.
  GpuWatch(const std::vector<torch::Device>& gpus, record::Recorder& recorder, int64_t log_every);

  void on_step_end(const record::StepRecord& record, int64_t step_of_epoch, train::LoopState& state) override;

 private:
  struct Watched {
    torch::Device device;
    std::string bus_id;
  };

  std::vector<Watched> gpus_;
  const cuda::Nvml nvml_;
  record::Recorder& recorder_;
  const int64_t log_every_;
};

}  // namespace ddprun::run
