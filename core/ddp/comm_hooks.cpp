#include "ddp/comm_hooks.hpp"

#include <utility>

#include "ddp/group_state.hpp"

namespace ddprun {
namespace {

// The order of the operations is PyTorch's, so that the results are equal bit for bit.
void compress(GradBucket& bucket, const Group& group, torch::ScalarType type) {
  if (bucket.buffer.element_size() <= 2) return allreduce_hook(bucket, group);
  const torch::Tensor compressed = bucket.buffer.to(type).div_(group.size());
  group.allreduce(compressed);
  bucket.buffer.copy_(compressed);
}

// While it lives, the group's collectives are for this bucket.
struct ForBucket {
  ForBucket(Group::State& its_state, std::size_t index) : state(its_state) {
    state.bucket = static_cast<int64_t>(index);
  }
  ~ForBucket() { state.bucket = -1; }
  ForBucket(const ForBucket&) = delete;
  ForBucket& operator=(const ForBucket&) = delete;

  Group::State& state;
};

}  // namespace

void allreduce_hook(GradBucket& bucket, const Group& group) {
  bucket.buffer.div_(group.size());
  group.allreduce(bucket.buffer);
}

void fp16_compress_hook(GradBucket& bucket, const Group& group) {
  compress(bucket, group, torch::kFloat16);
}

void bf16_compress_hook(GradBucket& bucket, const Group& group) {
  compress(bucket, group, torch::kBFloat16);
}

namespace ddp {

void register_comm_hook(train::GradientSync& sync, const Group& group, CommHook hook) {
  train::BucketedReducer& reducer = sync.reducer();
  reducer.set_hook([&reducer, hook = std::move(hook), group](const train::Bucket& bucket, std::size_t index) {
    const torch::NoGradGuard no_grad;
    group.state().bytes = 0;
    const ForBucket for_bucket(group.state(), index);
    GradBucket full{.index = static_cast<int>(index),
                    .is_last = index + 1 == reducer.bucket_count(),
                    .buffer = bucket.flat(),
                    .gradients = bucket.views(),
                    .parameters = reducer.parameters_of(bucket)};
    hook(full, group);
    return train::Reduced{group.state().execution, group.state().bytes};
  });
}

}  // namespace ddp
}  // namespace ddprun
