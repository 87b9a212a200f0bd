// Buckets: which gradients are averaged together, and the memory that one allreduce averages.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "comm/bucket_plan.hpp"
#include "ddprun/comm_backend.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::train {

// One reduction of a bucket over the ranks.
struct Transfer {
  std::size_t bytes = 0;  // payload
  // From the call (on a GPU: from when the stream reached it) until all data had arrived, including the wait for slower
  // ranks. On the host's clock.
  std::chrono::steady_clock::time_point begin, end;
  std::optional<std::chrono::steady_clock::time_point> ready{};  // when the bucket was full; not known on a GPU

  double seconds() const { return std::chrono::duration<double>(end - begin).count(); }
};

// How a bucket was reduced.
struct Reduced {
  ExecutionInfo execution;
  std::size_t bytes = 0;  // payload of its collectives
};

class Bucket;

// How a full bucket is reduced over the ranks, in stages. `index`: of the bucket. Only `reduce` calls the backend. The
// last stage leaves the result in bucket.flat(). With a stream-ordered backend, the stages queue their work on the
// current stream.
struct BucketHook {
  std::function<void(const Bucket& bucket, std::size_t index)> prepare;  // may be empty
  std::function<Reduced(const Bucket& bucket, std::size_t index)> reduce;
  std::function<void(const Bucket& bucket, std::size_t index)> complete;  // may be empty
};

// Contiguous memory with a view for each gradient. The backend allocates it, or LibTorch on a GPU if the backend has no
// CUDA memory.
class Bucket {
 public:
  // Collective, because it allocates from the backend.
  Bucket(CommBackend& backend, const comm::BucketPlan& plan, const std::vector<NamedTensor>& parameters);

  // Copies the parameter's gradient, times `scale`, into the bucket; zeros if there is none. A gradient that is already
  // the bucket's view is scaled in place. `scale` is a wrapped number, so that the product keeps the gradient's dtype.
  void copy_in(std::size_t slot, const NamedTensor& parameter, const torch::Tensor& scale);
  void set_zero(std::size_t slot) { views_.at(slot).zero_(); }
  // Makes the bucket's view the parameter's gradient.
  void make_gradient(std::size_t slot, const NamedTensor& parameter) const;

  // Calls hook.reduce, and measures it. run() calls the other stages too.
  void reduce(const BucketHook& hook, std::size_t index);
  void run(const BucketHook& hook, std::size_t index);
  // How the last reduce() carried out its collectives, and its bytes and times.
  const ExecutionInfo& execution() const { return execution_; }
  const Transfer& transfer() const { return transfer_; }

  const comm::BucketPlan& plan() const { return plan_; }
  const torch::Tensor& flat() const { return flat_; }                 // [plan().elements]; real, also of complex ones
  const std::vector<torch::Tensor>& views() const { return views_; }  // by slot, with the parameters' shapes
  torch::Device device() const { return flat_.device(); }

 private:
  comm::BucketPlan plan_;
  torch::Tensor flat_;
  std::vector<torch::Tensor> views_;
  ExecutionInfo execution_;
  Transfer transfer_;
};

}  // namespace ddprun::train
