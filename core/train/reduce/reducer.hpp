// Reducer: makes every rank's gradients the average over all ranks, while backward still runs.
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
#include "train/loop/parameters.hpp"
#include "train/reduce/transfer.hpp"

namespace ddprun::train {

// Two verbs, one thread (the one that runs backward). Each step: add every parameter once, then finalize.
class Reducer {
 public:
  virtual ~Reducer() = default;
  // The gradient of this parameter (its index in the list given at construction) is finished. It may start
  // communicating; the caller must not touch the gradient until finalize has returned.
  virtual void add(std::size_t parameter) = 0;
  // From now on all gradients hold their average over the ranks; on a GPU, for what is queued on the calling thread's
  // current stream. Throws Error(peer) when a collective fails, and Error(failure) that names the parameters which were
  // not added, unless they are to count as zero.
  virtual void finalize() = 0;
  // The order of parameters that buckets follow: that in which gradients became ready on rank 0 in the first step;
  // empty before that.
  virtual std::vector<int64_t> order() const = 0;
  // Takes such an order from an earlier run instead of the first step's. Between steps; collective. Throws Error(usage)
  // unless it lists every parameter once.
  virtual void follow(const std::vector<int64_t>& order) = 0;
  // What carried out the last step's collectives, each name once: "ring", or "ring, tree" where auto mixed them. Valid
  // until the next finalize.
  virtual const comm::Execution& execution() const = 0;
  // Off, between two steps: what is queued is recorded into a CUDA graph, and no times are taken. On at first.
  virtual void take_times(bool on) = 0;
  // The last measured step's allreduces, by bucket, hidden behind backward or not. Waits for a GPU.
  virtual std::vector<Transfer> transfers() const = 0;
  // Of all measured steps so far. Waits for a GPU.
  virtual TransferTotals totals() const = 0;
};

enum class Unused { error, zero };

struct ReducerOptions {
  std::size_t bucket_bytes = 25 << 20;
  std::size_t first_bucket_bytes = 1 << 20;
  Unused unused = Unused::error;
  std::chrono::milliseconds timeout{30000};
  // Called by finalize with the bucket that it is about to wait for. For progress reports; may be empty.
  std::function<void(int bucket)> on_wait;
};

// Gradients become views into buckets; the division by the world size is folded into the copy there. Buckets are
// reduced in the order in which gradients became ready on rank 0 in the first step, as c10d's Reducer does (Li et al.
// 2020). All but the last run on a communication thread while backward goes on; the last has nothing to hide behind and
// runs inline. On a GPU with a stream-ordered backend all are queued at once on a stream of their own, and nobody
// waits; another backend has to take CUDA memory too (staged_backend.hpp). The backend must outlive the reducer, which
// is the only one to call it between the first add and the end of finalize. Collective: all ranks make it with the same
// parameters.
std::unique_ptr<Reducer> bucketed_reducer(CommBackend& backend, std::vector<NamedTensor> parameters,
                                          ReducerOptions options);

// Calls Reducer::add from autograd. The thread that runs backward.
class GradientHooks {
 public:
  virtual ~GradientHooks() = default;
  // While held, finished gradients stay where they are, for the next backward of the step to add to: no_sync() of
  // DistributedDataParallel. Not held at first.
  virtual void hold(bool on) = 0;
  // After the last backward of a step: adds what was held and not finished again since.
  virtual void add_held() = 0;
};

// Calls reducer.add whenever autograd has finished a gradient of `parameters`. The hooks end with the result. The
// reducer must outlive it.
std::shared_ptr<GradientHooks> attach(Reducer& reducer, const std::vector<NamedTensor>& parameters);

}  // namespace ddprun::train
