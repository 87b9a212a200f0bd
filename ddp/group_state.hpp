// What a Group is a handle on, and its communication hooks.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "comm/group.hpp"
#include "ddprun/comm_hooks.hpp"
#include "ddprun/error.hpp"
#include "ddprun/group.hpp"
#include "launch/progress.hpp"
#include "train/reduce/bucket_transport.hpp"
#include "train/reduce/gradient_sync.hpp"

namespace ddprun {

struct Group::State : std::enable_shared_from_this<Group::State> {
  virtual ~State() = default;
  virtual void set_progress(launch::Progress) const {}
  // For collectives of the calling thread: waits until no other thread has one.
  const comm::Group& idle_ranks() const {
    if (in_virtual_rank) {
      throw Error(ExitCode::usage,
                  "a collective within for_each_virtual_rank(): the ranks have different numbers of virtual ranks, and "
                  "would not all call it; convert_sync_batchnorm() comes before DistributedDataParallel()");
    }
    comm_thread->drain();
    return ranks;
  }

  comm::Group ranks;
  torch::Device device{torch::kCPU};  // of the tensors
  int local_rank = 0;
  // Where gradients are reduced during backward. A collective of another thread waits until it has nothing to do.
  std::shared_ptr<train::WorkerThread> comm_thread = std::make_shared<train::WorkerThread>();
  // Of the collectives since the caller has reset them.
  ExecutionInfo execution;
  std::size_t bytes = 0;
  bool is_joining = false;       // as Group::is_joining()
  bool in_virtual_rank = false;  // within for_each_virtual_rank()
  // In a step of virtual ranks: the rows of all virtual ranks, for a synchronized BatchNorm (elastic/lockstep.hpp).
  std::function<torch::Tensor(const torch::Tensor& row)> gather_rows;
  int64_t bucket = -1;  // Collective::bucket of the next collectives: set while a hook runs
};

namespace ddp {

// `group` has the backend of `sync`, which uses the hook from its next step on. Call it on all ranks.
void register_comm_hook(train::GradientSync& sync, const Group& group, CommHook hook);

// Whether convert_sync_batchnorm() has converted a module of these parameters and buffers. Throws Error(usage) if it
// was to another group.
bool are_synchronized(const std::vector<train::NamedTensor>& tensors, const Group& group);

}  // namespace ddp
}  // namespace ddprun
