// BucketedReducer: gradients are views into buckets, and one allreduce averages each full bucket.
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
  Unused unused = Unused::error;  // for a parameter without gradient: report an error, or use zero
  std::chrono::milliseconds timeout{30000};
};

// Payload and time of the allreduces of all measured steps.
struct TransferTotals {
  std::size_t bytes = 0;  // of one step
  double seconds = 0;     // of all steps: sum over all allreduces
};

// Gradients become views into buckets; they are divided by the world size when they are copied there. Buckets are
// reduced in the order in which gradients became ready on rank 0 in the first step, as in c10d's Reducer (Li et al.
// 2020). On a CPU, a communication thread reduces all buckets but the last while backward runs; the calling thread
// reduces the last one, which has no backward left to overlap with. On a GPU with a stream-ordered backend, each bucket
// is queued immediately on a separate stream, and no thread waits. A blocking backend must also support CUDA memory
// (staged_backend.hpp). Nothing else may call the backend between the first add and the end of finalize.
class BucketedReducer final : public Reducer {
 public:
  // Collective: all ranks pass the same parameters. The backend must outlive the reducer. Throws Error(usage) if there
  // are no parameters.
  BucketedReducer(CommBackend& backend, std::vector<NamedTensor> parameters, ReducerOptions options);
  ~BucketedReducer() override;
  BucketedReducer(const BucketedReducer&) = delete;
  BucketedReducer& operator=(const BucketedReducer&) = delete;

  void add(std::size_t parameter) override;
  void finalize() override;

  // finalize calls it with the number of each bucket before it waits for the bucket. For progress reports.
  void set_on_wait(std::function<void(int bucket)> on_wait) { on_wait_ = std::move(on_wait); }

  // The order of parameters that defines the buckets; empty before the end of the first step.
  const std::vector<int64_t>& bucket_order() const { return order_; }
  // Uses the order of an earlier run instead of the first step's. Call it between steps; collective. Throws
  // Error(usage) unless the order lists every parameter once.
  void set_bucket_order(const std::vector<int64_t>& order);

  // The algorithms and transports of the last step, each name once: "ring", or "ring, tree". Call it between two steps.
  comm::Execution execution() const;
  // Call it between two steps. Off: the work is recorded into a CUDA graph and not timed. On by default.
  void set_timing(bool on) { transport_->set_timing(on); }
  // The allreduces of the last measured step, by bucket. Waits for a GPU.
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
  std::vector<std::size_t> pending_;            // by bucket: number of gradients not yet added
  std::size_t started_ = 0;                     // number of buckets started in this step
  std::vector<int64_t> order_;                  // the order that defines the buckets; empty in the first step
  comm::Execution first_execution_;             // of the first step, whose buckets are replaced
  std::unique_ptr<BucketTransport> transport_;  // last member: it uses the buckets
};

}  // namespace ddprun::train
