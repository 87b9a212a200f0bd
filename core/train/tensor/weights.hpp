// Saves and loads a model's weights as safetensors files.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/folder.hpp"
#include "checkpoint/safetensors.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::train {

// Views for checkpoint::write_safetensors. Owns contiguous CPU copies of the tensors that need one. Valid while this
// object lives and the tensors do not change.
class FileTensors {
 public:
  void add(const std::string& name, const torch::Tensor& tensor);
  void add(const std::vector<NamedTensor>& tensors, const std::string& prefix = "") {
    for (const NamedTensor& item : tensors) add(prefix + item.name, item.tensor);
  }
  const std::vector<checkpoint::TensorView>& views() const { return views_; }

 private:
  std::vector<torch::Tensor> kept_;
  std::vector<checkpoint::TensorView> views_;
};

// Copies a tensor of the file to the device and memory layout of `like`. Throws Error(usage) that names file and tensor
// unless shape and dtype are those of `like`.
torch::Tensor tensor_like(const torch::Tensor& like, const checkpoint::File& file, const checkpoint::Tensor& tensor);

// Throws Error(usage) unless the file holds exactly the module's parameters and buffers, under the names of PyTorch's
// state_dict, with their shapes and dtypes. Files of PyTorch before 0.4.1 have no num_batches_tracked, which may be
// missing: it counts as 0, as for load_state_dict. The message names the first differences and counts the rest. Tensors
// of the file whose names begin with `others` (if not empty) are left to others.
void require_weights(const torch::nn::Module& module, const checkpoint::File& file, const std::string& others = "");
// Overwrites all parameters and buffers with those of a file that require_weights() accepts.
void copy_weights(const torch::nn::Module& module, const checkpoint::File& file);

// Overwrites all parameters and buffers with those of a safetensors file, written by ddprun or by Python (which writes
// no checksums). Throws as require_weights(), and Error(usage) if a value is NaN or infinite; the module is unchanged
// then. Returns the file's metadata.
checkpoint::Metadata load_weights(const torch::nn::Module& module, const std::string& path);

// Commits parameters and buffers under the names of PyTorch's state_dict. Returns and throws what
// CheckpointFolder::save() does.
std::string save_weights(const torch::nn::Module& module, checkpoint::CheckpointFolder& folder, int64_t step,
                         int64_t epoch, const checkpoint::Metadata& metadata);

}  // namespace ddprun::train
