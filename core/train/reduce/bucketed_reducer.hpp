// BucketedReducer: gradients are views into buckets, and each full bucket is averaged by one allreduce.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/call.hpp"
#include "ddprun/comm_backend.hpp"
#include "ddprun/reducer.hpp"
#include "train/loop/parameters.hpp"
#include "train/reduce/bucket.hpp"
#include "train/reduce/bucket_transport.hpp"

namespace ddprun::train {

enum class Unused { error, zero };

struct ReducerOptions {
  std::size_t bucket_bytes = 25 << 20;
  std::size_t first_bucket_bytes = 1 << 20;
  Unused unused = Unused::error;  // for a parameter without gradient: an error, or a gradient of zero
  std::chrono::milliseconds timeout{30000};
};

// Payload and time of the allreduces of all measured steps.
struct TransferTotals {
  std::size_t bytes = 0;  // of one step
  double seconds = 0;     // of all steps: the sum over their allreduces
};

// Gradients become views into buckets; the division by the world size happens in the copy there. Buckets are reduced in
// the order in which gradients became ready on rank 0 in the first step, as c10d's Reducer does (Li et al. 2020). On a
// CPU all but the last are reduced on a communication thread while backward goes on; the last has nothing to hide
// behind and is reduced on the calling thread. On a GPU with a stream-ordered backend each bucket is queued at once on
// a stream of its own, and no thread waits; another backend must take CUDA memory too (staged_backend.hpp). Between the
// first add and the end of finalize nobody else may call the backend.
class BucketedReducer final : public Reducer {
 public:
  // Collective: all ranks give the same parameters. The backend must outlive the reducer. Throws Error(usage) where
  // there is no parameter.
  BucketedReducer(CommBackend& backend, std::vector<NamedTensor> parameters, ReducerOptions options);
  ~BucketedReducer() override;
  BucketedReducer(const BucketedReducer&) = delete;
  BucketedReducer& operator=(const BucketedReducer&) = delete;

  void add(std::size_t parameter) override;
  void finalize() override;

  // Called by finalize with each bucket that it is about to wait for, for progress reports.
  void set_on_wait(std::function<void(int bucket)> on_wait) { on_wait_ = std::move(on_wait); }

  // The order of parameters that the buckets follow; empty before the end of the first step.
  const std::vector<int64_t>& bucket_order() const { return order_; }
  // Uses such an order of an earlier run instead of the first step's. Between steps; collective. Throws Error(usage)
  // unless it lists every parameter once.
  void set_bucket_order(const std::vector<int64_t>& order);

  // What carried out the last step's collectives, each name once: "ring", or "ring, tree". Between two steps.
  comm::Execution execution() const;
  // Between two steps. Off: what is queued is recorded into a CUDA graph, and nothing is timed. On at first.
  void set_timing(bool on) { transport_->set_timing(on); }
  // The last measured step's allreduces, by bucket. Waits for a GPU.
  std::vector<Transfer> transfers() const { return transport_->transfers(); }
  // Waits for a GPU.
  TransferTotals totals() const;

 private:
  struct Place {
    std::size_t bucket = 0;
    std::size_t slot = 0;
  };

  void build(const std::vector<std::size_t>& order, std::size_t first_cap, std::size_t cap);
  void begin_step();
  void mark_added(std::size_t parameter);
  void add_missing();
  void finish_step();

  CommBackend& backend_;
  const std::vector<NamedTensor> parameters_;
  const ReducerOptions options_;
  const torch::Tensor scale_;
  std::function<void(int)> on_wait_;
  std::vector<Bucket> buckets_;
  std::vector<Place> places_;                   // by parameter
  std::vector<bool> added_;                     // by parameter, this step
  std::vector<std::size_t> ready_order_;        // this step
  std::vector<std::size_t> pending_;            // by bucket: gradients still to come
  std::size_t started_ = 0;                     // buckets of this step
  std::vector<int64_t> order_;                  // that the buckets follow; empty in the first step
  comm::Execution first_execution_;             // of the first step, whose buckets are gone
  std::unique_ptr<BucketTransport> transport_;  // last: it uses the buckets
};

}  // namespace ddprun::train
