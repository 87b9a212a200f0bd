#include "train/loop/parity.hpp"

#include "record/recorder.hpp"
#include "train/tensor/tensor_buffer.hpp"

namespace ddprun::train {
ParityLog::ParityLog(const std::string& run_dir, int rank, std::vector<NamedTensor> parameters, int64_t steps)
    : parameters_(std::move(parameters)),
      steps_left_(steps),
      file_(run_dir + "/parity-rank" + std::to_string(rank) + ".jsonl") {}

void ParityLog::before_optimizer_step(int64_t) {
  if (steps_left_ <= 0) return;
  gradients_.clear();
  for (const NamedTensor& parameter : parameters_) {
    const torch::Tensor& gradient = parameter.tensor.grad();
    gradients_.push_back(digest_of(gradient.defined() ? gradient : torch::zeros_like(parameter.tensor)));
  }
}

void ParityLog::after_optimizer_step(int64_t step) {
  if (steps_left_ <= 0) return;
  std::string lines;
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    const NamedTensor& parameter = parameters_[index];
    lines += record::line_of(record::ParityRecord{step, parameter.name, parameter.tensor.numel(), gradients_.at(index),
                                                  digest_of(parameter.tensor)});
    lines += '\n';
  }
  file_.write(lines);
  --steps_left_;
}

}  // namespace ddprun::train
