#include "train/device/channels_last.hpp"

namespace ddprun::train {

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
