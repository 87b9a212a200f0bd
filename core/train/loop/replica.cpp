#include "train/loop/replica.hpp"

#include <map>

#include "ddprun/error.hpp"
#include "train/loop/tensor_digest.hpp"
#include "train/reduce/tensor_buffer.hpp"

namespace ddprun::train {

void broadcast_tensors(CommBackend& backend, const std::vector<NamedTensor>& tensors,
                       std::chrono::milliseconds timeout) {
  const torch::NoGradGuard no_grad;
  std::map<torch::ScalarType, std::vector<torch::Tensor>> by_type;
  for (const NamedTensor& item : tensors) by_type[item.tensor.scalar_type()].push_back(item.tensor.detach());
  for (auto& [type, group] : by_type) {
    std::vector<torch::Tensor> parts;
    for (const torch::Tensor& tensor : group) parts.push_back(tensor.reshape({-1}));
    const torch::Tensor flat = torch::cat(parts);
    backend.broadcast(in_place(flat)).wait(timeout);
    std::vector<torch::Tensor> views;
    int64_t offset = 0;
    for (const torch::Tensor& tensor : group) {
      views.push_back(flat.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
      offset += tensor.numel();
    }
    at::_foreach_copy_(group, views);  // few kernels for all tensors on a GPU
  }
}

void compare_tensors(CommBackend& backend, const std::vector<NamedTensor>& tensors, int64_t step,
                     std::chrono::milliseconds timeout) {
  std::vector<int64_t> mine;
  for (const NamedTensor& item : tensors) mine.push_back(static_cast<int64_t>(hash_of(item.tensor)));
  std::vector<int64_t> all(mine.size() * static_cast<std::size_t>(backend.size()));
  backend.allgather({.send = mine.data(), .recv = all.data(), .count = mine.size(), .dtype = DType::int64})
      .wait(timeout);
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    for (int rank = 1; rank < backend.size(); ++rank) {
      if (all[static_cast<std::size_t>(rank) * mine.size() + index] == all[index]) continue;
      throw Error(ExitCode::peer, "step " + std::to_string(step) + ": parameter \"" + tensors[index].name +
                                      "\" differs between rank 0 and rank " + std::to_string(rank) +
                                      ": the replicas have drifted apart");
    }
  }
}

}  // namespace ddprun::train
