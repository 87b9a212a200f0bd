#include "ddp/group_state.hpp"

#include <c10/util/ScopeExit.h>
#include <c10/util/StringUtil.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ddprun/error.hpp"

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

// `now` is a member of GradBucket after the hook, and `memory` was that member before.
void copy_if_assigned(const std::string& member, const torch::Tensor& now, const torch::Tensor& memory) {
  if (now.is_same(memory)) return;
  if (!now.defined() || now.sizes() != memory.sizes() || now.scalar_type() != memory.scalar_type()) {
    const auto form = [](const torch::Tensor& one) { return c10::str(one.scalar_type(), ' ', one.sizes()); };
    throw Error(ExitCode::usage, "a communication hook assigned to bucket." + member + " " +
                                     (now.defined() ? "a tensor " + form(now) : "an undefined tensor") + ": expected " +
                                     form(memory));
  }
  memory.copy_(now);
}

// What a hook has of a bucket. Between two steps that is only the payload: the bucket may be freed.
struct HookedBucket {
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
  void close(const train::Bucket& bucket) {
    copy_if_assigned("buffer", full.buffer, bucket.flat());
    full.gradients.resize(bucket.views().size());
    for (std::size_t slot = 0; slot < bucket.views().size(); ++slot) {
      copy_if_assigned("gradients", full.gradients[slot], bucket.views()[slot]);
    }
    full = {.buffer = {}, .gradients = {}, .parameters = {}, .payload = std::move(full.payload)};
  }

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
  const auto buckets = std::make_shared<std::vector<HookedBucket>>();
  const bool has_complete = hook.complete != nullptr;
  train::BucketHook stages;
  stages.prepare = [&reducer, buckets, group, prepare = std::move(hook.prepare)](const train::Bucket& bucket,
                                                                                 std::size_t index) {
    const torch::NoGradGuard no_grad;
    if (index == 0) buckets->resize(reducer.bucket_count());  // no bucket is being reduced
    buckets->at(index).open(reducer, bucket, index);
    if (prepare) prepare(buckets->at(index).full, group);
  };
  stages.reduce = [buckets, has_complete, group, reduce = std::move(hook.reduce)](const train::Bucket& bucket,
                                                                                  std::size_t index) {
    const torch::NoGradGuard no_grad;
    group.state().bytes = 0;
    group.state().bucket = static_cast<int64_t>(index);
    const auto after = c10::make_scope_exit([&] { group.state().bucket = -1; });
    reduce(buckets->at(index).full, group);
    if (!has_complete) buckets->at(index).close(bucket);
    return train::Reduced{group.state().execution, group.state().bytes};
  };
  if (has_complete) {
    stages.complete = [buckets, group, complete = std::move(hook.complete)](const train::Bucket& bucket,
                                                                            std::size_t index) {
      const torch::NoGradGuard no_grad;
      complete(buckets->at(index).full, group);
      buckets->at(index).close(bucket);
    };
  }
  reducer.set_hook(std::move(stages));
}

}  // namespace ddp
}  // namespace ddprun
