#include "train/loop/file_tensors.hpp"

#include <algorithm>

#include "ddprun/error.hpp"
#include "ddprun/plugin/model_shape.hpp"
#include "train/reduce/tensor_buffer.hpp"

namespace ddprun::train {

void FileTensors::add(const std::string& name, const torch::Tensor& tensor) {
  kept_.push_back(tensor.detach().cpu().contiguous());
  const torch::Tensor& kept = kept_.back();
  views_.push_back({name, safetensors_dtype(kept), kept.sizes().vec(), kept.data_ptr(), kept.nbytes()});
}

void FileTensors::add(const std::vector<NamedTensor>& tensors, const std::string& prefix) {
  for (const NamedTensor& item : tensors) add(prefix + item.name, item.tensor);
}

const checkpoint::Tensor* find_tensor(const checkpoint::File& file, const std::string& name) {
  const auto found =
      std::find_if(file.tensors.begin(), file.tensors.end(), [&](const auto& tensor) { return tensor.name == name; });
  return found == file.tensors.end() ? nullptr : &*found;
}

torch::Tensor tensor_like(const torch::Tensor& like, const checkpoint::File& file, const checkpoint::Tensor& tensor) {
  const std::string wanted = safetensors_dtype(like);
  if (tensor.dtype != wanted || tensor.shape != like.sizes().vec()) {
    throw Error(ExitCode::usage, file.path + ": tensor " + checkpoint::quoted_name(tensor.name) + " is " +
                                     tensor.dtype + " " + shape_text(tensor.shape) + ", and the model needs " + wanted +
                                     " " + shape_text(like.sizes().vec()));
  }
  // from_blob requires a non-const pointer; the memory is only read.
  const torch::Tensor bytes =
      torch::from_blob(const_cast<std::byte*>(tensor.data.data()), tensor.shape, like.scalar_type());
  return torch::empty_like(like).copy_(bytes);
}

}  // namespace ddprun::train
