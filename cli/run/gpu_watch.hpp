// GpuWatch: records the state of a rank's GPUs at intervals.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "cuda/nvml.hpp"
#include "record/recorder.hpp"
#include "train/loop/callback.hpp"

namespace ddprun::run {

// Whenever a line is logged. A sample takes about a millisecond per GPU and does not wait for the GPU.
class GpuWatch final : public train::Callback {
 public:
  // CUDA devices of this rank. Memory peaks count from here on. The recorder must outlive it.
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
