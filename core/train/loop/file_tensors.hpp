// Tensors on their way into a safetensors file and out of one.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "train/loop/parameters.hpp"

namespace ddprun::train {

// Views for checkpoint::write_safetensors, with the contiguous copies on the CPU that some of them need. Valid while it
// lives and the tensors are not changed.
class FileTensors {
 public:
  void add(const std::string& name, const torch::Tensor& tensor);
  void add(const std::vector<NamedTensor>& tensors, const std::string& prefix = "");
  const std::vector<checkpoint::TensorView>& views() const { return views_; }

 private:
  std::vector<torch::Tensor> kept_;
  std::vector<checkpoint::TensorView> views_;
};

// Null where the file has no such tensor.
const checkpoint::Tensor* find_tensor(const checkpoint::File& file, const std::string& name);

// A copy of the file's tensor, laid out, and on the device, as `like` is. Throws Error(usage) that names file and
// tensor unless shape and dtype are those of `like`.
torch::Tensor tensor_like(const torch::Tensor& like, const checkpoint::File& file, const checkpoint::Tensor& tensor);

}  // namespace ddprun::train
