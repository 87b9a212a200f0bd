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

// What a hook has of a bucket. Between two steps that is only the payload: the bucket may be freed.
struct Kept {
  void open(const train::BucketedReducer& reducer, const train::Bucket& bucket, std::size_t index) {
    const auto before = buffer.lock();
    const bool is_rebuilt = before.get() != bucket.flat().unsafeGetTensorImpl();
    full = {.index = static_cast<int>(index),
            .is_last = index + 1 == reducer.bucket_count(),
            .buffer = bucket.flat(),
            .gradients = bucket.views(),
            .parameters = reducer.parameters_of(bucket),
            .payload = is_rebuilt ? torch::Tensor() : std::move(full.payload)};
    buffer = full.buffer.getIntrusivePtr();
  }
  void close() { full = {.gradients = {}, .parameters = {}, .payload = std::move(full.payload)}; }

  GradBucket full;
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> buffer{torch::Tensor().getIntrusivePtr()};
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
  const auto kept = std::make_shared<std::vector<Kept>>();  // by bucket
  const bool has_complete = hook.complete != nullptr;
  train::BucketHook stages;
  stages.prepare = [&reducer, kept, group, prepare = std::move(hook.prepare)](const train::Bucket& bucket,
                                                                              std::size_t index) {
    const torch::NoGradGuard no_grad;
    if (index == 0) kept->resize(reducer.bucket_count());  // no bucket is being reduced
    kept->at(index).open(reducer, bucket, index);
    if (prepare) prepare(kept->at(index).full, group);
  };
  stages.reduce = [kept, has_complete, group, reduce = std::move(hook.reduce)](const train::Bucket&,
                                                                               std::size_t index) {
    const torch::NoGradGuard no_grad;
    group.state().bytes = 0;
    const ForBucket for_bucket(group.state(), index);
    reduce(kept->at(index).full, group);
    if (!has_complete) kept->at(index).close();
    return train::Reduced{group.state().execution, group.state().bytes};
  };
  if (has_complete) {
    stages.complete = [kept, group, complete = std::move(hook.complete)](const train::Bucket&, std::size_t index) {
      const torch::NoGradGuard no_grad;
      complete(kept->at(index).full, group);
      kept->at(index).close();
    };
  }
  reducer.set_hook(std::move(stages));
}

}  // namespace ddp
}  // namespace ddprun
