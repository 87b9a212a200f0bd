#include "ddprun/group.hpp"

#include <mutex>
#include <string>

#include "ddp/group_state.hpp"
#include "ddprun/error.hpp"
#include "launch/signals.hpp"
#include "train/tensor/tensor_buffer.hpp"

namespace ddprun {
namespace {

void check_device(const Group::State& state, const torch::Tensor& tensor) {
  if (tensor.defined() && tensor.device() == state.device) return;
  throw Error(ExitCode::usage, (tensor.defined() ? "a tensor on " + tensor.device().str() : "an undefined tensor") +
                                   " in a collective: the group is on " + state.device.str());
}

void check_op(const torch::Tensor& tensor, Op op) {
  if (!tensor.is_complex() || op == Op::sum || op == Op::avg) return;
  throw Error(ExitCode::usage, "a reduction of complex numbers: expected Op::sum or Op::avg");
}

// Only `tensor` counts for the payload.
using Function = Work (CommBackend::*)(const Collective&);
void call(Group::State& state, Function function, Collective collective, const torch::Tensor& tensor) {
  const comm::Group& ranks = state.idle_ranks();
  collective.bucket = state.bucket;
  state.execution = (ranks.backend().*function)(collective).wait(ranks.timeout());
  state.bytes += tensor.nbytes();
}

}  // namespace

Group::State& Group::state() const {
  if (state_ != nullptr) return *state_;
  throw Error(ExitCode::usage, "this Group has no ranks: assign what ddprun::init() returns to it first");
}

int Group::rank() const {
  return state().ranks.rank();
}
int Group::size() const {
  return state().ranks.size();
}
int Group::local_rank() const {
  return state().local_rank;
}
bool Group::is_joining() const {
  return state().is_joining;
}

void Group::allreduce(const torch::Tensor& tensor, Op op) const {
  check_device(state(), tensor);
  check_op(tensor, op);
  Collective collective = train::in_place(tensor);
  collective.op = op;
  call(state(), &CommBackend::allreduce, collective, tensor);
}

void Group::broadcast(const torch::Tensor& tensor, int root) const {
  check_device(state(), tensor);
  Collective collective = train::in_place(tensor);
  collective.root = root;
  call(state(), &CommBackend::broadcast, collective, tensor);
}

std::vector<torch::Tensor> Group::all_gather(const torch::Tensor& tensor) const {
  check_device(state(), tensor);
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape.insert(shape.begin(), size());
  const torch::Tensor all = torch::empty(shape, tensor.options());
  const torch::Tensor mine = all.select(0, rank());
  mine.copy_(tensor);
  call(state(), &CommBackend::allgather, train::from_to(mine, all), all);
  return all.unbind();
}

torch::Tensor Group::reduce_scatter(const torch::Tensor& tensor, Op op) const {
  check_device(state(), tensor);
  check_op(tensor, op);
  if (tensor.dim() == 0 || tensor.size(0) % size() != 0) {
    throw Error(ExitCode::usage, "reduce_scatter: the first dimension must be divisible by the number of ranks, " +
                                     std::to_string(size()));
  }
  if (size() == 1) return tensor.clone();
  const int64_t block = tensor.size(0) / size();
  if (!state().ranks.backend().capabilities().reduce_scatter) {
    const torch::Tensor reduced = tensor.clone();
    allreduce(reduced, op);
    return reduced.narrow(0, rank() * block, block).clone();
  }
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape[0] = block;
  torch::Tensor mine = torch::empty(shape, tensor.options());
  Collective collective = train::from_to(tensor, mine);
  collective.count = train::count_of(mine);
  collective.op = op;
  call(state(), &CommBackend::reduce_scatter, collective, tensor);
  return mine;
}

bool Group::stop_requested() const {
  static std::once_flag caught;
  std::call_once(caught, [] {
    launch::defer_stop_signals();
    launch::catch_stop_signals();
  });
  const bool mine = launch::stop_signal() != ExitCode::ok;
  const torch::Tensor any = torch::full({1}, mine ? 1 : 0, torch::kInt32).to(state().device);
  allreduce(any, Op::max);
  return any.item<int32_t>() != 0;
}

void Group::barrier() const {
  state().idle_ranks().barrier();
}

}  // namespace ddprun
