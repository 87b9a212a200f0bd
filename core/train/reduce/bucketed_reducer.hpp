// BucketedReducer: copies gradients into buckets, and averages each full bucket with one allreduce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/call.hpp"
#include "comm/group.hpp"
#include "ddprun/reducer.hpp"
#include "train/reduce/bucket.hpp"
#include "train/reduce/bucket_transport.hpp"
#include "train/tensor/parameters.hpp"

namespace ddprun::train {

struct ReducerOptions {
  std::size_t bucket_bytes = 25 << 20;
  std::size_t first_bucket_bytes = 1 << 20;
  // A parameter without a gradient: an error, or it counts as zero.
  bool find_unused_parameters = false;
  // The same parameters have gradients in each step. The first step finds the unused ones.
  bool static_graph = false;
  // What to do about a parameter without a gradient, and about one with several.
  std::string unused_advice = "set strategy.find_unused_parameters = true";
  std::string twice_advice = "run one backward per step";
  // Gradients become views into buckets. Otherwise they are copied there and back.
  bool gradient_as_bucket_view = true;
  // Of the backend, if it has several reducers, or if others call it during backward; null: a thread of this reducer
  std::shared_ptr<WorkerThread> comm_thread = nullptr;
};

// Payload and time of the reductions of all measured steps.
struct TransferTotals {
  std::size_t bytes = 0;  // of one step
  double seconds = 0;     // of all steps: sum over all reductions
};

// Gradients are divided by the world size when they are copied into buckets. Buckets are reduced in the order in which
// gradients became ready on rank 0 in the first step, as in c10d's Reducer (Li et al. 2020). On a CPU, a communication
// thread reduces all buckets but the last while backward runs; the calling thread reduces the last one, which has no
// backward left to overlap with, unless a hook has a stage complete. On a GPU with a stream-ordered backend, each
// bucket is queued immediately on a separate stream, and no thread waits. A blocking backend must also support CUDA
// memory (staged_backend.hpp). Nothing else may call the backend between the first add and the end of finalize, unless
// it drains the WorkerThread first.
//
// With find_unused_parameters, the ranks exchange in each step which parameters have gradients; with static_graph, only
// in the first. A parameter that no rank uses keeps its gradient as it was, or none.
class BucketedReducer final : public Reducer {
 public:
  // Collective: all ranks pass the same parameters. The group has a backend. Throws Error(usage) if there are no
  // parameters.
  BucketedReducer(comm::Group ranks, std::vector<NamedTensor> parameters, ReducerOptions options);
  ~BucketedReducer() override;

  void add(std::size_t parameter) override;
  void finalize() override;

  // After a backward that threw, instead of finalize: forgets what was added. Waits for the buckets that were started.
  void abandon() noexcept;

  // Replaces add and finalize on a rank without samples: takes part in the reductions with zeros. Afterwards the
  // gradients are those of the other ranks.
  void finalize_zeros();

  // Replaces the allreduce. The hook gets this rank's gradients undivided and leaves their average over the ranks. On
  // which threads and streams, bucket_transport.hpp says. Call it between two steps, with the same hook on all ranks.
  void set_hook(BucketHook hook);
  // What gradients are divided by before the allreduce, from the next add on. The world size by default.
  void set_divisor(int divisor);
  // The parameters of a bucket, by slot.
  std::vector<torch::Tensor> parameters_of(const Bucket& bucket) const;
  std::size_t bucket_count() const { return buckets_.size(); }

  // finalize calls it with the number of each bucket before it waits for the bucket. For progress reports.
  void set_on_wait(std::function<void(int bucket)> on_wait) { on_wait_ = std::move(on_wait); }

  // The order of parameters that defines the buckets; empty before the end of the first step.
  const std::vector<int64_t>& bucket_order() const { return order_; }
  // Uses the order of an earlier run instead of the first step's. Call it between steps; collective. Throws
  // Error(usage) unless the order lists every parameter once.
  void set_bucket_order(const std::vector<int64_t>& order);

  // The algorithms and transports of the last step, each name once: "ring", or "ring, tree". Call it between two steps.
  comm::Execution execution() const;
  // The allreduces of the last step, by bucket. Waits for a GPU.
  std::vector<Transfer> transfers() const { return transport_->transfers(); }
  // Waits for a GPU.
  TransferTotals totals() const;

 private:
  struct BucketSlot {
    std::size_t bucket = 0;
    std::size_t slot = 0;
  };

  void build(const std::vector<std::size_t>& order, std::size_t first_cap, std::size_t cap);
  void begin_step();
  bool is_average(const torch::Tensor& gradient) const;
  void copy_in(std::size_t parameter);
  void mark_ready(std::size_t parameter);
  bool allows_missing() const { return options_.find_unused_parameters || options_.static_graph; }
  void add_missing();
  void finish_buckets();
  void find_used();
  void make_gradients();
  void finish_step();

  const comm::Group ranks_;
  const std::vector<NamedTensor> parameters_;
  const ReducerOptions options_;
  const std::shared_ptr<WorkerThread> comm_thread_;
  torch::Tensor scale_;  // of gradients, before they are reduced
  BucketHook hook_;
  bool has_hook_ = false;  // of set_hook
  std::function<void(int)> on_wait_;
  std::vector<Bucket> buckets_;
  std::vector<BucketSlot> slots_;               // by parameter
  std::vector<uint8_t> added_;                  // by parameter, this step: 1 if it has a gradient
  std::vector<uint8_t> used_;                   // by parameter: 1 if a rank has a gradient; empty: not known
  std::vector<std::size_t> ready_order_;        // this step
  std::vector<std::size_t> pending_;            // by bucket: number of gradients not yet added
  std::size_t started_ = 0;                     // number of buckets started in this step
  std::vector<int64_t> order_;                  // the order that defines the buckets; empty in the first step
  comm::Execution first_execution_;             // of the first step, whose buckets are replaced
  std::unique_ptr<BucketTransport> transport_;  // last member: it uses the buckets
};

}  // namespace ddprun::train
