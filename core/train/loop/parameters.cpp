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

}  // namespace ddprun::train
