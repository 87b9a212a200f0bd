#include "cli/run/gpu_watch.hpp"

#include "cli/run/callbacks.hpp"
#include "cuda/driver.hpp"
#include "train/device/cuda.hpp"
#include "train/loop/data_loader.hpp"

namespace ddprun::run {

GpuWatch::GpuWatch(const std::vector<torch::Device>& gpus, record::Recorder& recorder, int64_t log_every)
    : recorder_(recorder), log_every_(log_every) {
  for (const torch::Device gpu : gpus) {
    gpus_.push_back({gpu, cuda::gpus().at(static_cast<std::size_t>(gpu.index())).bus_id});
    train::reset_peak_memory(gpu);
  }
}

void GpuWatch::on_step_end(const record::StepRecord& step, int64_t step_of_epoch, train::LoopState& state) {
  if (!is_line_due(log_every_, step_of_epoch, state.train.steps())) return;
  for (const Watched& gpu : gpus_) {
    const cuda::GpuSample sample = nvml_.sample(gpu.bus_id);
    const train::GpuMemory peak = train::peak_memory(gpu.device);
    record::GpuRecord record;
    record.step = step.step;
    record.device = gpu.device.index();
    record.allocated = peak.allocated;
    record.reserved = peak.reserved;
    record.utilization = sample.utilization;
    record.memory_used = sample.memory_used;
    record.temperature = sample.temperature;
    record.power = sample.power;
    recorder_.gpu(record);
  }
}

}  // namespace ddprun::run
