#include "train/loop/parity_log.hpp"

#include "record/json.hpp"
#include "train/loop/tensor_digest.hpp"

namespace ddprun::train {

ParityLog::ParityLog(const std::string& run_dir, int rank, std::vector<NamedTensor> parameters, int64_t steps)
    : parameters_(std::move(parameters)),
      steps_left_(steps),
      file_(run_dir + "/parity-rank" + std::to_string(rank) + ".jsonl") {}

void ParityLog::before_optimizer_step(int64_t) {
  if (!is_active()) return;
  gradients_.clear();
  for (const NamedTensor& parameter : parameters_) {
    const torch::Tensor& gradient = parameter.tensor.grad();
    gradients_.push_back(print_of(gradient.defined() ? gradient : torch::zeros_like(parameter.tensor)));
  }
}

void ParityLog::after_optimizer_step(int64_t step) {
  if (!is_active()) return;
  std::string lines;
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    const NamedTensor& parameter = parameters_[index];
    record::ParityRecord record;
    record.step = step;
    record.parameter = parameter.name;
    record.elements = parameter.tensor.numel();
    record.gradient = gradients_.at(index);
    record.value = print_of(parameter.tensor);
    if (index < distances_.size()) {
      record.ulp_max = distances_[index].max();
      record.ulp_mean = distances_[index].mean();
    }
    record::append_json(lines, record);
    lines += '\n';
  }
  file_.write(lines);
  --steps_left_;
}

}  // namespace ddprun::train
