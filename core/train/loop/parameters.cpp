#include "train/loop/parameters.hpp"

#include <set>

namespace ddprun::train {
namespace {

template <class Dict>
void append(std::vector<NamedTensor>& list, const Dict& dict) {
  for (const auto& item : dict) {
    if (item.value().defined()) list.push_back({item.key(), item.value()});
  }
}

}  // namespace

std::vector<NamedTensor> trainable_parameters(const torch::nn::Module& module) {
  std::vector<NamedTensor> list;
  append(list, module.named_parameters());
  std::set<const void*> seen;
  std::erase_if(list, [&](const NamedTensor& item) {
    return !item.tensor.requires_grad() || !seen.insert(item.tensor.unsafeGetTensorImpl()).second;
  });
  return list;
}

std::vector<NamedTensor> buffers(const torch::nn::Module& module) {
  std::vector<NamedTensor> list;
  append(list, module.named_buffers());
  return list;
}

std::vector<NamedTensor> state(const torch::nn::Module& module) {
  std::vector<NamedTensor> list;
  append(list, module.named_parameters());
  append(list, module.named_buffers());
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
