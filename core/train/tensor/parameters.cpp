#include "train/tensor/parameters.hpp"

#include <set>

namespace ddprun::train {
namespace {

std::vector<NamedTensor> list_of(const auto& dict) {
  std::vector<NamedTensor> list;
  for (const auto& item : dict) {
    if (item.value().defined()) list.push_back({item.key(), item.value()});
  }
  return list;
}

}  // namespace

ModelTensors tensors_of(const torch::nn::Module& module) {
  return {[&module] { return list_of(module.named_parameters()); },
          [&module] { return list_of(module.named_buffers()); }};
}

std::vector<NamedTensor> trainable_parameters(const ModelTensors& model) {
  std::vector<NamedTensor> list = model.parameters();
  std::set<const void*> seen;
  std::erase_if(list, [&](const NamedTensor& item) {
    return !item.tensor.requires_grad() || !seen.insert(item.tensor.unsafeGetTensorImpl()).second;
  });
  return list;
}

std::vector<NamedTensor> state(const ModelTensors& model) {
  std::vector<NamedTensor> list = model.parameters();
  const std::vector<NamedTensor> buffers = model.buffers();
  list.insert(list.end(), buffers.begin(), buffers.end());
  return list;
}

void use_channels_last(torch::nn::Module& module) {
  const auto lay_out = [](torch::Tensor tensor) {
    if (tensor.dim() == 4) tensor.set_data(with_channels_last(tensor.detach()));
  };
  for (const torch::Tensor& parameter : module.parameters()) lay_out(parameter);
  for (const torch::Tensor& buffer : module.buffers()) lay_out(buffer);
}

torch::Tensor with_channels_last(const torch::Tensor& batch) {
  return batch.dim() == 4 ? batch.contiguous(torch::MemoryFormat::ChannelsLast) : batch;
}

}  // namespace ddprun::train
