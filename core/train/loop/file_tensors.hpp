// Conversion between tensors and safetensors files.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "train/loop/parameters.hpp"

namespace ddprun::train {

// Views for checkpoint::write_safetensors. Owns contiguous CPU copies of the tensors that need one. Valid while this
// object lives and the tensors do not change.
class FileTensors {
 public:
  void add(const std::string& name, const torch::Tensor& tensor);
  void add(const std::vector<NamedTensor>& tensors, const std::string& prefix = "");
  const std::vector<checkpoint::TensorView>& views() const { return views_; }

 private:
  std::vector<torch::Tensor> kept_;
  std::vector<checkpoint::TensorView> views_;
};

// Null if the file has no such tensor.
const checkpoint::Tensor* find_tensor(const checkpoint::File& file, const std::string& name);

// Copies a tensor of the file to the device and memory layout of `like`. Throws Error(usage) that names file and tensor
// unless shape and dtype are those of `like`.
torch::Tensor tensor_like(const torch::Tensor& like, const checkpoint::File& file, const checkpoint::Tensor& tensor);

}  // namespace ddprun::train
