#include "train/reduce/gradient_sync.hpp"

#include <utility>

#include "train/tensor/replicas.hpp"

namespace ddprun::train {

GradientSync::GradientSync(ModelTensors model, comm::Group ranks, GradientSyncOptions options)
    : model_(std::move(model)),
      ranks_(ranks),
      broadcasts_buffers_(options.broadcast_buffers),
      parameters_(trainable_parameters(model_)),
      reducer_(ranks, parameters_, options.reducer),
      hooks_(reducer_, parameters_, options.reducer.static_graph) {}

void GradientSync::broadcast_state(int root) {
  broadcast_tensors(ranks_, state(model_), root);
}

void GradientSync::broadcast_buffers(int root) {
  const std::vector<NamedTensor> now = model_.buffers();
  if (!broadcasts_buffers_ || now.empty()) return;
  if (on_phase_) on_phase_(Phase::broadcast, -1);
  broadcast_tensors(ranks_, now, root);
}

void GradientSync::abandon() noexcept {
  hooks_.reset();
  reducer_.abandon();
}

void GradientSync::finalize() {
  hooks_.add_held();
  reducer_.finalize();
}

void GradientSync::skip() {
  hooks_.reset();  // what was held is not of this backward
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    const torch::Tensor& parameter = parameters_[index].tensor;
    parameter.mutable_grad() = torch::zeros_like(parameter);
    reducer_.add(index);
  }
}

void GradientSync::set_on_phase(std::function<void(Phase phase, int bucket)> on_phase) {
  on_phase_ = std::move(on_phase);
  reducer_.set_on_wait([this](int bucket) { on_phase_(Phase::allreduce, bucket); });
}

}  // namespace ddprun::train
