#include "train/tensor/replicas.hpp"

#include <torch/torch.h>

#include <map>
#include <string>

#include "ddprun/error.hpp"
#include "train/tensor/tensor_buffer.hpp"

namespace ddprun::train {

void broadcast_tensors(const comm::Group& ranks, const std::vector<NamedTensor>& tensors, int root) {
  const torch::NoGradGuard no_grad;
  std::map<torch::ScalarType, std::vector<torch::Tensor>> by_type;
  for (const NamedTensor& item : tensors) {
    // Not detach(): that shares the counter with which autograd refuses a second backward through changed buffers.
    if (item.tensor.numel() > 0) by_type[item.tensor.scalar_type()].push_back(item.tensor.variable_data());
  }
  for (auto& [type, group] : by_type) {
    const torch::Tensor flat = at::flatten_dense_tensors(group);
    Collective call = in_place(flat.view(torch::kUInt8));  // bool and complex have no DType
    call.root = root;
    ranks.backend().broadcast(call).wait(ranks.timeout());
    // Few kernels for all tensors on a GPU.
    if (ranks.rank() != root) at::_foreach_copy_(group, at::unflatten_dense_tensors(flat, group));
  }
}

void compare_tensors(const comm::Group& ranks, const std::vector<NamedTensor>& tensors, int64_t step) {
  std::vector<int64_t> mine;
  for (const NamedTensor& item : tensors) mine.push_back(static_cast<int64_t>(hash_of(item.tensor)));
  const std::vector<int64_t> all = ranks.gather(mine);
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    for (int rank = 1; rank < ranks.size(); ++rank) {
      if (all[static_cast<std::size_t>(rank) * mine.size() + index] == all[index]) continue;
      throw Error(ExitCode::peer, "step " + std::to_string(step) + ": parameter \"" + tensors[index].name +
                                      "\" differs between rank 0 and rank " + std::to_string(rank) +
                                      ": the replicas have drifted apart");
    }
  }
}

}  // namespace ddprun::train
