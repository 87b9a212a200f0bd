#include "train/loop/parity.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "record/recorder.hpp"
#include "train/tensor/tensor_buffer.hpp"

namespace ddprun::train {
namespace {

// The distance from a non-negative float32 to the next larger one; for zero, that of the smallest float32.
double unit_of(float magnitude) {
  return static_cast<double>(std::nextafter(magnitude, std::numeric_limits<float>::infinity())) - magnitude;
}

}  // namespace

void UlpDistance::add(float reduced, double reference, double magnitude) {
  const double apart = std::abs(static_cast<double>(reduced) - static_cast<float>(reference));
  const double distance = apart / unit_of(static_cast<float>(magnitude));
  max_ = std::max(max_, distance);
  sum_ += distance;
  ++count_;
}

ParityLog::ParityLog(const std::string& run_dir, int rank, std::vector<NamedTensor> parameters, int64_t steps)
    : parameters_(std::move(parameters)),
      steps_left_(steps),
      file_(run_dir + "/parity-rank" + std::to_string(rank) + ".jsonl") {}

void ParityLog::before_optimizer_step(int64_t) {
  if (!is_active()) return;
  gradients_.clear();
  for (const NamedTensor& parameter : parameters_) {
    const torch::Tensor& gradient = parameter.tensor.grad();
    gradients_.push_back(digest_of(gradient.defined() ? gradient : torch::zeros_like(parameter.tensor)));
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
    record.value = digest_of(parameter.tensor);
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

namespace {

constexpr int64_t kPiece = 1 << 18;  // elements of a rank that are gathered at once: 1 MiB

class ParityReducer final : public Reducer {
 public:
  ParityReducer(Reducer& inner, comm::Group ranks, std::vector<NamedTensor> parameters, ParityLog& log)
      : inner_(inner), ranks_(ranks), parameters_(std::move(parameters)), log_(log), local_(parameters_.size()) {}

  void add(std::size_t parameter) override {
    if (log_.is_active()) local_.at(parameter) = parameters_.at(parameter).tensor.grad().detach().clone();
    inner_.add(parameter);
  }

  void finalize() override {
    inner_.finalize();
    if (!log_.is_active()) return;
    std::vector<UlpDistance> distances;
    for (std::size_t parameter = 0; parameter < parameters_.size(); ++parameter) {
      distances.push_back(measure(parameters_[parameter].tensor, local_[parameter]));
      local_[parameter].reset();
    }
    log_.set_distances(std::move(distances));
  }

 private:
  // local: undefined if this rank had no gradient, which counts as zero. No rank had one if the parameter has none.
  UlpDistance measure(const torch::Tensor& parameter, const torch::Tensor& local) {
    UlpDistance distance;
    if (parameter.scalar_type() != torch::kFloat32 || !parameter.grad().defined()) return distance;
    const torch::Tensor mine = (local.defined() ? local : torch::zeros_like(parameter)).cpu().contiguous().view({-1});
    const torch::Tensor reduced = parameter.grad().detach().cpu().contiguous().view({-1});
    for (int64_t begin = 0; begin < mine.numel(); begin += kPiece) {
      const int64_t count = std::min(kPiece, mine.numel() - begin);
      measure_piece(mine.narrow(0, begin, count), reduced.narrow(0, begin, count), distance);
    }
    return distance;
  }

  void measure_piece(const torch::Tensor& mine, const torch::Tensor& reduced, UlpDistance& distance) {
    const torch::Tensor all = torch::empty({ranks_.size(), mine.numel()});
    Collective call = in_place(mine);
    call.recv = all.data_ptr();
    ranks_.backend().allgather(call).wait(ranks_.timeout());
    const float* values = all.data_ptr<float>();
    const float* got = reduced.data_ptr<float>();
    for (int64_t i = 0; i < mine.numel(); ++i) {
      double sum = 0, magnitudes = 0;
      for (int rank = 0; rank < ranks_.size(); ++rank) {
        const double term = values[rank * mine.numel() + i];
        sum += term;
        magnitudes += std::abs(term);
      }
      distance.add(got[i], sum / ranks_.size(), magnitudes / ranks_.size());
    }
  }

  Reducer& inner_;
  const comm::Group ranks_;
  const std::vector<NamedTensor> parameters_;
  ParityLog& log_;
  std::vector<torch::Tensor> local_;  // by parameter, of the current step
};

}  // namespace

std::unique_ptr<Reducer> parity_reducer(Reducer& inner, comm::Group ranks, std::vector<NamedTensor> parameters,
                                        ParityLog& log) {
  return std::make_unique<ParityReducer>(inner, ranks, std::move(parameters), log);
}

}  // namespace ddprun::train
