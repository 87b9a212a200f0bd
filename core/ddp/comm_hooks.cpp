#include "ddp/comm_hooks.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "ddp/group_state.hpp"

namespace ddprun {
namespace {

// The order of the operations is PyTorch's, so that the results are equal bit for bit.
CommHook compress_hook(torch::ScalarType type) {
  CommHook hook;
  hook.prepare = [type](GradBucket& bucket, const Group& group) {
    if (!bucket.payload.defined()) {
      const bool is_small = bucket.buffer.element_size() <= 2;
      bucket.payload = is_small ? bucket.buffer : torch::empty_like(bucket.buffer, type);
    }
    bucket.payload.copy_(bucket.buffer).div_(group.size());
  };
  hook.reduce = [](GradBucket& bucket, const Group& group) { group.allreduce(bucket.payload); };
  hook.complete = [](GradBucket& bucket, const Group&) { bucket.buffer.copy_(bucket.payload); };
  return hook;
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

CommHook fp16_compress_hook() {
  return compress_hook(torch::kFloat16);
}

CommHook bf16_compress_hook() {
  return compress_hook(torch::kBFloat16);
}

namespace ddp {

void register_comm_hook(train::GradientSync& sync, const Group& group, CommHook hook) {
  train::BucketedReducer& reducer = sync.reducer();
  const auto buckets = std::make_shared<std::vector<GradBucket>>();
  train::BucketHook stages;
  stages.prepare = [&reducer, buckets, group, prepare = std::move(hook.prepare)](const train::Bucket& bucket,
                                                                                 std::size_t index) {
    const torch::NoGradGuard no_grad;
    if (index == 0 && (buckets->empty() || !buckets->front().buffer.is_same(bucket.flat()))) {
      *buckets = std::vector<GradBucket>(reducer.bucket_count());  // no reduction is running
    }
    GradBucket& full = buckets->at(index);
    if (!full.buffer.defined()) {
      full = {.index = static_cast<int>(index),
              .is_last = index + 1 == reducer.bucket_count(),
              .buffer = bucket.flat(),
              .gradients = bucket.views(),
              .parameters = reducer.parameters_of(bucket),
              .payload = {}};
    }
    if (prepare) prepare(full, group);
  };
  stages.reduce = [buckets, group, reduce = std::move(hook.reduce)](const train::Bucket&, std::size_t index) {
    const torch::NoGradGuard no_grad;
    group.state().bytes = 0;
    const ForBucket for_bucket(group.state(), index);
    reduce(buckets->at(index), group);
    return train::Reduced{group.state().execution, group.state().bytes};
  };
  if (hook.complete) {
    stages.complete = [buckets, group, complete = std::move(hook.complete)](const train::Bucket&, std::size_t index) {
      const torch::NoGradGuard no_grad;
      complete(buckets->at(index), group);
    };
  }
  reducer.set_hook(std::move(stages));
}

}  // namespace ddp
}  // namespace ddprun
