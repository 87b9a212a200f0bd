// Disguises device tensors as CPU tensors over the same memory for one operator call, and converts results back.
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

namespace ddprun::fake_gpu {

class Disguise {
 public:
  // `tensor` as a CPU tensor; the tensor itself if it is one.
  at::Tensor of(const at::Tensor& tensor);
  c10::Storage of(const c10::Storage& storage);

  // True for a disguise that an operator returned, or for a view of one.
  bool has(const at::Tensor& tensor) const;

  // Converts an operator's result: the original tensor, a view of its memory, or new memory, which moves to `device`.
  at::Tensor undo(const at::Tensor& tensor, c10::Device device);
  // Call it after an operator that may have changed the shape or the memory of the disguised `tensor`.
  void take_over(const at::Tensor& tensor);

 private:
  c10::Storage storage_behind(const c10::Storage& disguised, c10::Device device);

  std::unordered_map<c10::StorageImpl*, c10::Storage> disguises_;  // by the original
  std::unordered_map<c10::StorageImpl*, c10::Storage> originals_;  // by the disguise
  std::unordered_map<c10::TensorImpl*, at::Tensor> tensors_;       // the disguises
  std::unordered_map<c10::TensorImpl*, at::Tensor> real_;          // by the disguise
};

}  // namespace ddprun::fake_gpu
