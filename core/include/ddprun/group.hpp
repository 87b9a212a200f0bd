// ddprun/group.hpp: the ranks of a job, and collectives on tensors. For programs with a training loop of their own.
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ddprun/comm_backend.hpp"

namespace ddprun {

// In the comments of the library, Error(peer) is an Error with code() == ExitCode::peer (ddprun/error.hpp), and so on.

struct GroupOptions {
  // The communication plugin, by name or path. If empty: the environment variable DDPRUN_BACKEND, or else "gloo".
  std::string backend{};
  std::string algorithm = "auto";
  std::map<std::string, std::string> options{};  // of the backend: comm.options in a config
  // Longest time for the ranks to meet, and for one collective. (PyTorch's default for Gloo is 30 minutes.)
  std::chrono::milliseconds timeout{30'000};
  // Before each collective, the ranks compare what they call; a difference throws Error(peer) on each rank instead of
  // a wrong result. It takes about a microsecond if `ddprun launch` runs the job on one host. Otherwise it is one more
  // allgather before each collective.
  bool check = true;
  // Allow a job over several hosts without a secret (the environment variable DDPRUN_SECRET; docs/clusters.md).
  bool insecure = false;
  // Where the tensors are. A CUDA device needs an index.
  torch::Device device{torch::kCPU};
  // An exception that nothing catches ends the process with one line and the exit code of the error (README), by
  // std::set_terminate and std::_Exit: no destructor runs. The other ranks end with this first cause. If another
  // launcher has started the ranks, a rank that does not call a collective ends 2 s after another one has failed.
  bool exit_on_error = false;
};

// The ranks of a job. A handle: copies are the same group. The group ends with its last copy; destroy it on all ranks
// after the last collective. DistributedDataParallel, ZeroRedundancyOptimizer and GradScalerOptions hold a copy. A
// module with SyncBatchNorm holds none.
//
// Threads: one thread at a time calls the functions of a group and of the DistributedDataParallel objects that use it.
//
// All functions but rank(), size(), local_rank() and is_joining() are collective: all ranks call them in the same order
// with tensors of the same shape and dtype. Tensors are contiguous and on GroupOptions::device. A collective blocks:
// there is no async_op. (With nccl, it is queued on the current stream instead.) Autograd does not record it.
//
// A collective throws CommError, which is an Error: Error(peer) if a rank has ended, hangs or calls something else,
// Error(plugin) if the backend cannot carry out the call (dtype, op, root), and Error(failure) if the backend fails
// otherwise. It throws Error(usage) for a tensor that is undefined or on another device, and Error(failure) for one
// that is not contiguous or has a dtype that no backend supports. Reductions of complex tensors are sum and avg; other
// ones throw Error(usage). After Error(peer), the group is of no more use.
class Group {
 public:
  Group() = default;  // every function of it throws Error(usage), until it is assigned to
  int rank() const;
  int size() const;
  int local_rank() const;  // among the ranks of this group on this host, from 0
  // Whether this rank takes the place of one that has died, and the others train. Until train_elastic() (ddp.hpp) lets
  // it join, rank() and size() are those at the start of the job, and collectives throw Error(usage).
  bool is_joining() const;

  // In place: each element becomes the reduction of this element over the ranks.
  void allreduce(const torch::Tensor& tensor, Op op = Op::sum) const;
  // In place: the tensor of rank `root` goes to all ranks.
  void broadcast(const torch::Tensor& tensor, int root = 0) const;
  // The tensors of all ranks, in rank order.
  std::vector<torch::Tensor> all_gather(const torch::Tensor& tensor) const;
  // `tensor` is [size() * n, ...], otherwise it throws Error(usage). Returns this rank's block [n, ...] of the
  // reduction over the ranks. With a backend that has no reduce_scatter, it is an allreduce.
  torch::Tensor reduce_scatter(const torch::Tensor& tensor, Op op = Op::sum) const;
  // Returns when all ranks have called it.
  void barrier() const;

  // For a training loop that saves before it ends: whether any rank has received SIGINT, SIGTERM or SIGUSR1 (from
  // Slurm, or Ctrl-C). The answer is the same on all ranks. Call it in each step. The first call replaces the
  // program's handlers of these signals. A second SIGINT or SIGTERM ends the process.
  bool stop_requested() const;

  // The same as barrier(), for finding a rank that hangs: after `timeout` (of the group, if not given) it throws
  // Error(peer) that names all ranks that have not come. Slow, and each call leaves a few bytes per rank until the job
  // ends.
  void monitored_barrier(std::optional<std::chrono::milliseconds> timeout = std::nullopt) const;

  // Splits the ranks into groups: those with the same color form one, as with MPI_Comm_split and ncclCommSplit. `key`
  // orders the ranks of a group; ranks with equal keys keep their order. A rank with a negative color gets
  // std::nullopt.
  //
  // Each group has a backend of its own, so groups may communicate at the same time. Without `options`, it has the
  // options of this group. With `options`, it takes only an empty backend from this group: device, timeout, algorithm,
  // options and check are those of `options`. They must be equal on all ranks of a color.
  //
  // A message about a subgroup begins with the ranks of its members in the job. Every later rank number is a rank of
  // the subgroup.
  //
  // Collective on this group, which stays usable. The new group keeps what it needs of this one alive. Throws as
  // init(), and Error(peer) if a rank calls new_group() instead.
  std::optional<Group> split(int color, int key = 0, const std::optional<GroupOptions>& options = std::nullopt) const;
  // The group of these ranks of this group, in ascending order, as torch.distributed.new_group; std::nullopt on the
  // other ranks. All ranks of this group call it with the same list. `options` and errors are those of split(). It
  // also throws Error(usage) if the list is empty, repeats a rank, or has a rank that does not exist, and Error(peer)
  // if the lists differ.
  std::optional<Group> new_group(const std::vector<int>& ranks,
                                 const std::optional<GroupOptions>& options = std::nullopt) const;

  // For the classes of the library.
  struct State;
  explicit Group(std::shared_ptr<State> state) : state_(std::move(state)) {}
  State& state() const;
  std::weak_ptr<State> weak_state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// Joins the ranks that a launcher has started: `ddprun launch`, torchrun, srun, mpirun, or RANK, WORLD_SIZE,
// MASTER_ADDR and MASTER_PORT in the environment. Without a launcher, the group has one rank. Call it at the beginning
// of main(), before other threads exist. Collective.
//
// Under `ddprun launch`, each further call makes another group of the same ranks; the groups before it may have ended
// or not. Under another launcher, a further call throws Error(usage). So does a call in a process that a rank has
// forked. Such a process has no part in the group, however it ends.
//
// Without GroupOptions::exit_on_error, init() changes neither a signal nor std::set_terminate, and the library never
// ends the process. An exception that leaves main() ends it as in every C++ program, with SIGABRT.
//
// Unless OMP_NUM_THREADS is set, Torch uses one compute thread for each core of this rank's part of the host.
//
// Throws Error(rendezvous) if the ranks do not meet, or if they differ in the version of ddprun, the backend, or
// `algorithm`, `options` or `check` of GroupOptions. The other members are not compared. Throws Error(usage) if the
// device is neither cpu nor cuda:N, and Error(plugin) if the backend is missing or refused, or refuses `options`, and
// if there is no driver, no GPU N or no CUDA in this LibTorch.
//
// With a GPU, call it before anything that asks Torch for CUDA, such as torch::manual_seed: it loads Torch's CUDA
// libraries if the program is not linked with them. The GPU becomes the calling thread's current device.
Group init(const GroupOptions& options = {});

}  // namespace ddprun
