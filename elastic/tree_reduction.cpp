#include "elastic/tree_reduction.hpp"

#include <algorithm>
#include <bit>

#include "ddprun/error.hpp"
#include "train/tensor/tensor_buffer.hpp"

namespace ddprun::elastic {
namespace {

// Complex numbers are added as pairs, as the buckets hold them.
torch::Tensor as_real(const torch::Tensor& tensor) {
  return tensor.is_complex() ? at::view_as_real(tensor) : tensor;
}

// The gradients of a bucket in another tensor of its size, by slot, with the strides that they have in the bucket.
std::vector<torch::Tensor> views_in(const torch::Tensor& flat, const train::Bucket& bucket) {
  std::vector<torch::Tensor> views;
  for (const torch::Tensor& view : bucket.views()) {
    const torch::Tensor real = as_real(view);
    const int64_t offset = real.storage_offset() - bucket.flat().storage_offset() + flat.storage_offset();
    views.push_back(flat.as_strided(real.sizes(), real.strides(), offset));
  }
  return views;
}

// Segment `rank` of a tensor that is cut into `size` segments.
torch::Tensor segment_of(const torch::Tensor& flat, int rank, int size) {
  const int64_t begin = flat.numel() * rank / size, end = flat.numel() * (rank + 1) / size;
  return flat.narrow(0, begin, end - begin);
}

// So much of a segment is summed at a time: the received sums of more would need memory.
constexpr int64_t kPieceBytes = 2 << 20;

Block block_of(const torch::Tensor& tensor) {
  return {train::in_place(tensor).recv, tensor.nbytes()};
}

Exchange exchange_like(const torch::Tensor& tensor, int size) {
  const Collective call = train::in_place(tensor);
  const auto count = static_cast<std::size_t>(size);
  return {std::vector<Block>(count), std::vector<Block>(count), call.memory, call.stream};
}

}  // namespace

TreeReduction::TreeReduction(train::GradientSync& sync, comm::Group ranks, int virtual_ranks,
                             std::optional<torch::ScalarType> wire)
    : sync_(sync), ranks_(ranks), share_(share_of(ranks.rank(), ranks.size(), virtual_ranks)), wire_(wire) {
  for (const train::NamedTensor& parameter : sync.parameters()) {
    const torch::NoGradGuard no_grad;
    const torch::Tensor real = as_real(parameter.tensor);
    if (ranks.backend().capabilities().exchange || is_added_by_backend(real.new_empty({0}, wire_type(real)))) continue;
    throw Error(ExitCode::plugin, "backend \"" + ranks.backend().name() +
                                      "\" has no exchange, which virtual ranks need; use gloo, shm, ucx or nccl");
  }
  for (int rank = 0; rank < ranks.size(); ++rank) {
    nodes_.push_back(nodes_of(share_of(rank, ranks.size(), virtual_ranks)));
    rounds_ = std::max(rounds_, nodes_.back().size());
    first_.push_back(first_.back() + nodes_.back().size());
  }
  train::BucketHook hook;
  hook.prepare = [this](const train::Bucket& bucket, std::size_t index) { prepare(bucket, index); };
  hook.reduce = [this](const train::Bucket& bucket, std::size_t index) { return reduce(bucket, index); };
  if (wire_ || rounds_ > 1) {
    hook.complete = [this](const train::Bucket& bucket, std::size_t index) {
      const torch::NoGradGuard no_grad;
      if (wire_) bucket.flat().copy_(payloads_[index].back());
      payloads_[index].clear();
    };
  }
  sync_.reducer().set_hook(std::move(hook));
}

torch::ScalarType TreeReduction::wire_type(const torch::Tensor& tensor) const {
  return wire_ && tensor.element_size() > 2 ? *wire_ : tensor.scalar_type();
}

void TreeReduction::end_part(int part, bool may_lack) {
  const torch::NoGradGuard no_grad;
  Tensors gradients;
  for (const train::NamedTensor& parameter : sync_.parameters()) {
    torch::Tensor& gradient = parameter.tensor.mutable_grad();
    if (!gradient.defined() && !may_lack) {
      throw Error(ExitCode::failure, "no gradient of virtual rank " + std::to_string(share_.first + part) + " for \"" +
                                         parameter.name +
                                         "\": the loss does not depend on this parameter; let the "
                                         "model use it, or set find_unused_parameters = true");
    }
    if (!gradient.defined()) gradient = torch::zeros_like(parameter.tensor);
    const torch::Tensor real = as_real(gradient.resolve_conj());
    gradients.push_back(real.to(wire_type(real)));
    gradient.reset();
  }
  sums_.push({share_.first + part, 1}, std::move(gradients), [](Tensors& left, Tensors& right) {
    for (std::size_t i = 0; i < left.size(); ++i) {
      // Two gradients may share memory.
      const bool is_dense = left[i].layout() == torch::kStrided;  // another layout is an error, later
      const bool is_own = is_dense && left[i].use_count() == 1 && left[i].storage().use_count() == 1;
      left[i] = is_own ? left[i].add_(right[i]) : left[i].add(right[i]);
      right[i].reset();
    }
  });
  if (!may_lack) sync_.hooks().reset();  // the last part must have all gradients too
}

void TreeReduction::prepare(const train::Bucket& bucket, std::size_t index) {
  const torch::NoGradGuard no_grad;
  if (index == 0) payloads_.resize(sync_.reducer().bucket_count());  // no bucket is being reduced
  Tensors& own = payloads_[index] = {};
  const std::size_t count = nodes_[static_cast<std::size_t>(ranks_.rank())].size() - (wire_ ? 0 : 1);
  while (own.size() < count) own.push_back(torch::empty_like(bucket.flat(), wire_type(bucket.flat())));
  if (wire_) own.back().copy_(bucket.flat());
  const Tensors nodes = payload_of(bucket, index);
  const auto of_bucket = [&](const Tensors& by_parameter) {
    Tensors by_slot;
    for (const comm::Slot& slot : bucket.plan().slots) by_slot.push_back(by_parameter[slot.parameter]);
    return by_slot;
  };
  // The last part is in the bucket. It gets those earlier sums that the tree joins with it; the others are sent alone.
  const auto& sums = sums_.nodes();
  std::size_t left = sums.size();
  Range at{share_.first + share_.count - 1, 1};
  for (; left > 0 && are_siblings(sums[left - 1].at, at); --left) {
    at::_foreach_add_(views_in(nodes.back(), bucket), of_bucket(sums[left - 1].value));
    at = {sums[left - 1].at.first, 2 * at.count};
  }
  for (std::size_t node = 0; node < left; ++node) {
    at::_foreach_copy_(views_in(nodes[node], bucket), of_bucket(sums[node].value));
  }
}

bool TreeReduction::is_added_by_backend(const torch::Tensor& flat) const {
  if (ranks_.size() <= 2) return true;  // a sum of two has one order
  return std::has_single_bit(static_cast<unsigned>(ranks_.size())) &&
         ranks_.backend().capabilities().has_canonical_order(train::dtype_of(flat), train::in_place(flat).memory);
}

// A tensor for each node of this rank's share. The last one is the bucket itself, if the dtype is the same.
TreeReduction::Tensors TreeReduction::payload_of(const train::Bucket& bucket, std::size_t index) const {
  Tensors nodes = payloads_[index];
  if (!wire_) nodes.push_back(bucket.flat());
  return nodes;
}

train::Reduced TreeReduction::reduce(const train::Bucket& bucket, std::size_t index) {
  const torch::NoGradGuard no_grad;
  const Tensors nodes = payload_of(bucket, index);
  const torch::Tensor& flat = nodes.back();
  if (ranks_.size() == 1) return {{"tree", "memory"}, 0};
  if (is_added_by_backend(flat)) {
    Collective call = train::in_place(flat);
    call.bucket = static_cast<int64_t>(index);
    call.canonical_order = ranks_.size() > 2;
    return {ranks_.backend().allreduce(call).wait(ranks_.timeout()), flat.nbytes()};
  }
  const int own = ranks_.rank(), size = ranks_.size();
  const torch::Tensor segment = segment_of(flat, own, size);
  const int pieces = static_cast<int>(flat.numel() / size * flat.element_size() / kPieceBytes) + 1;
  for (int piece = 0; piece < pieces; ++piece) sum_piece(nodes, piece, pieces);
  Exchange call = exchange_like(flat, size);
  for (int rank = 0; rank < size; ++rank) {
    if (rank != own) call.send[static_cast<std::size_t>(rank)] = block_of(segment);
    if (rank != own) call.recv[static_cast<std::size_t>(rank)] = block_of(segment_of(flat, rank, size));
  }
  const ExecutionInfo info = ranks_.backend().exchange(call).wait(ranks_.timeout());
  return {{"tree", info.transport}, flat.nbytes()};
}

// Adds a piece of this rank's segment over all ranks. In a round, a rank sends one of its nodes.
void TreeReduction::sum_piece(const Tensors& nodes, int piece, int pieces) {
  const int own = ranks_.rank(), size = ranks_.size();
  const auto piece_of = [&](const torch::Tensor& node, int rank) {
    return segment_of(segment_of(node, rank, size), piece, pieces);
  };
  const torch::Tensor sum = piece_of(nodes.back(), own);
  const auto count = static_cast<int64_t>(first_.back()), bytes = count * static_cast<int64_t>(sum.nbytes());
  if (!room_.defined() || bytes > room_.numel()) room_ = torch::empty({bytes}, sum.options().dtype(torch::kByte));
  Tensors all = room_.narrow(0, 0, bytes).view(sum.scalar_type()).view({count, sum.numel()}).unbind();
  for (std::size_t round = 0; round < rounds_; ++round) {
    Exchange call = exchange_like(sum, size);
    for (int rank = 0; rank < size; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      const bool sends = round < nodes.size(), receives = round < nodes_[at].size();
      if (rank == own && sends) all[first_[at] + round] = piece_of(nodes[round], own);
      if (rank != own && sends) call.send[at] = block_of(piece_of(nodes[round], rank));
      if (rank != own && receives) call.recv[at] = block_of(all[first_[at] + round]);
    }
    ranks_.backend().exchange(call).wait(ranks_.timeout());
  }
  TreeSum<torch::Tensor> tree;
  std::size_t next = 0;
  for (const auto& of_rank : nodes_) {
    for (const Range& node : of_rank) {
      tree.push(node, all[next++], [](const torch::Tensor& left, const torch::Tensor& right) { left.add_(right); });
    }
  }
  sum.copy_(tree.nodes().front().value);
}

}  // namespace ddprun::elastic
