// Tensors of the device as tensors of the CPU over the same memory, for one call of an operator, and back.
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

namespace ddprun::fake_gpu {

class Disguise {
 public:
  // `tensor` as one of the CPU; the tensor itself where it is one.
  at::Tensor of(const at::Tensor& tensor);
  c10::Storage of(const c10::Storage& storage);

  // True for one that an operator made of what was disguised, or returned as it is.
  bool has(const at::Tensor& tensor) const;

  // What an operator returned: the tensor that was disguised, a view of its memory, or memory of its own, which moves
  // to `device`.
  at::Tensor undo(const at::Tensor& tensor, c10::Device device);
  // After an operator has run that may have given `tensor`, which was disguised, another shape or other memory.
  void take_over(const at::Tensor& tensor);

 private:
  c10::Storage storage_behind(const c10::Storage& disguised, c10::Device device);

  std::unordered_map<c10::StorageImpl*, c10::Storage> disguises_;  // by the original
  std::unordered_map<c10::StorageImpl*, c10::Storage> originals_;  // by the disguise
  std::unordered_map<c10::TensorImpl*, at::Tensor> tensors_;       // the disguises
  std::unordered_map<c10::TensorImpl*, at::Tensor> real_;          // by the disguise
};

}  // namespace ddprun::fake_gpu
