#include <c10/core/CPUAllocator.h>

#include "torch_fallback.hpp"
#include "torch_streams.hpp"

namespace ddprun::fake_gpu {
namespace {

at::Tensor tensor_over(c10::Storage storage, c10::DispatchKey key, const at::Tensor& like) {
  auto impl = c10::make_intrusive<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), like.dtype());
  impl->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  return at::Tensor(std::move(impl));
}

}  // namespace

c10::Storage Disguise::of(const c10::Storage& storage) {
  auto& disguise = disguises_[storage.unsafeGetStorageImpl()];
  if (!disguise) {
    // originals_ keeps the original; an operator that resizes it gets memory from the CPU's allocator.
    disguise = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), storage.nbytes(),
                                                     c10::DataPtr(storage.data_ptr().get(), c10::kCPU),
                                                     c10::GetCPUAllocator(), true);
    originals_[disguise.unsafeGetStorageImpl()] = storage;
  }
  return disguise;
}

at::Tensor Disguise::of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) return tensor;
  at::Tensor& disguise = tensors_[tensor.unsafeGetTensorImpl()];
  if (!disguise.defined()) {
    disguise = tensor_over(of(tensor.storage()), c10::DispatchKey::CPU, tensor);
    real_[disguise.unsafeGetTensorImpl()] = tensor;
  }
  return disguise;
}

c10::Storage Disguise::storage_behind(const c10::Storage& disguised, c10::Device device) {
  c10::StorageImpl* const key = disguised.unsafeGetStorageImpl();
  auto& original = originals_[key];
  if (!original) {
    // Not a disguise: a kernel made it.
    const std::size_t bytes = disguised.nbytes();
    c10::DataPtr memory(
        key->mutable_data(), new c10::Storage(disguised), [](void* owner) { delete static_cast<c10::Storage*>(owner); },
        c10::kCPU);
    original = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                     adopt(std::move(memory), bytes, device),
                                                     c10::GetAllocator(c10::kCUDA), true);
    return original;
  }
  if (original.data_ptr().get() != key->data()) {
    // A disguise for which a kernel has allocated larger memory.
    const std::size_t bytes = disguised.nbytes();
    c10::DataPtr memory = key->set_data_ptr(c10::DataPtr(nullptr, c10::kCPU));
    original.set_data_ptr_noswap(adopt(std::move(memory), bytes, device));
    original.set_nbytes(bytes);
    key->set_data_ptr_noswap(c10::DataPtr(original.data_ptr().get(), c10::kCPU));
  }
  return original;
}

bool Disguise::has(const at::Tensor& tensor) const {
  return originals_.contains(tensor.storage().unsafeGetStorageImpl());
}

at::Tensor Disguise::undo(const at::Tensor& tensor, c10::Device device) {
  if (!tensor.defined() || !tensor.is_cpu()) return tensor;
  const auto found = real_.find(tensor.unsafeGetTensorImpl());
  if (found != real_.end()) return found->second;
  return tensor_over(storage_behind(tensor.storage(), device), c10::DispatchKey::CUDA, tensor);
}

void Disguise::take_over(const at::Tensor& tensor) {
  const at::Tensor& disguise = tensors_.at(tensor.unsafeGetTensorImpl());
  const c10::Storage storage = storage_behind(disguise.storage(), tensor.device());
  c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
  if (!storage.is_alias_of(tensor.storage()) ||
      storage.unsafeGetStorageImpl() != tensor.storage().unsafeGetStorageImpl()) {
    impl->set_storage_keep_dtype(storage);
  }
  if (disguise.sizes() != tensor.sizes() || disguise.strides() != tensor.strides() ||
      disguise.storage_offset() != tensor.storage_offset()) {
    impl->set_sizes_and_strides(disguise.sizes(), disguise.strides(), disguise.storage_offset());
  }
}

void access(Stream stream, const at::Tensor& tensor, bool writes, const std::string& what) {
  if (tensor.numel() == 0) return;
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  const std::size_t bytes = (static_cast<std::size_t>(last) + 1) * tensor.element_size();
  access(stream, tensor.const_data_ptr(), bytes, writes, what);
}

}  // namespace ddprun::fake_gpu
