#include "communicator.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "gpu_space.hpp"

namespace ddprun::ucx_backend {
namespace {

uint64_t bytes_of(const Collective& call) {
  return call.count * size_of(call.dtype);
}

void copy(const Collective& call, void* to, MemorySpace& space) {
  if (call.send != to) space.copy(to, call.send, bytes_of(call));
}

void over_ucx(Algorithm algorithm, const Group& group, const Collective& call, Schedule& schedule) {
  algorithm == Algorithm::tree ? tree_allreduce(group, call, schedule) : ring_allreduce(group, call, schedule);
}

}  // namespace

UcxCommunicator::UcxCommunicator(const Host& host)
    : CommBackend(host),
      host_(host),
      group_{host.rank(), host.size()},
      asked_(algorithm_named(host.algorithm())),
      gpu_(host.device() < 0 ? nullptr : std::make_unique<const Gpu>(host.device())),
      messages_(host),
      leaders_(host::leaders_of(messages_.places())),
      node_(make_node()),
      choice_(host, static_cast<int>(leaders_.size()),
              node_ != nullptr && node_->is_usable() && has_several_hosts_and_shares_some()),
      pipeline_(messages_, host.size()) {
  const bool is_hierarchical = asked_ ? asked_ == Algorithm::hierarchical : choice_.may_take(Algorithm::hierarchical);
  if (is_hierarchical && node_ != nullptr && !node_->is_usable()) {
    throw CommError(CommStatus::unsupported, "algorithm \"hierarchical\": the ranks of a host cannot share memory: " +
                                                 node_->why_not() + "; use \"ring\" or \"tree\"");
  }
  const OnGpu here(gpu_.get());
  try {
    messages_.connect();
    if (gpu_ != nullptr) gpu_space_ = std::make_unique<GpuSpace>(*gpu_, messages_);
  } catch (...) {
    messages_.close(messages_.culprit());  // the others name the same rank
    messages_.disconnect();                // on the GPU
    throw;
  }
  const std::string& transports = messages_.transports();
  node_transports_ = leaders_.size() == 1 ? "memory" : "memory," + messages_.transports_between_hosts();
  ring_.info = {"ring", transports.c_str()};
  tree_.info = {"tree", transports.c_str()};
  hierarchical_.info = {"hierarchical", node_transports_.c_str()};
  pairwise_.info = {"pairwise", transports.c_str()};
  dissemination_.info = {"dissemination", transports.c_str()};
}

std::unique_ptr<shm::Group> UcxCommunicator::make_node() const {
  const bool may_be_tuned = !host_.options().text("tuning").empty();
  const bool is_meant = asked_ ? asked_ == Algorithm::hierarchical
                               : host_.device() < 0 && (may_be_tuned || has_several_hosts_and_shares_some());
  return is_meant && !is_alone() ? std::make_unique<shm::Group>(host_, messages_.places()) : nullptr;
}

bool UcxCommunicator::has_several_hosts_and_shares_some() const noexcept {
  return leaders_.size() > 1 && leaders_.size() < static_cast<std::size_t>(group_.size);
}

UcxCommunicator::~UcxCommunicator() {
  const OnGpu here(gpu_.get());
  gpu_space_.reset();
  messages_.disconnect();
}

MemorySpace& UcxCommunicator::space_of(Memory memory) {
  if (memory != Memory::cuda) return host_space_;
  if (gpu_space_ != nullptr) return *gpu_space_;
  throw CommError(CommStatus::unsupported, "GPU memory, but this communicator was created for host memory");
}

template <class Plan>
void UcxCommunicator::run(const char* name, const Collective& call, Plan&& plan) {
  if (failure_) throw *failure_;
  MemorySpace& space = space_of(call.memory);
  const OnGpu here(gpu_.get());
  messages_.begin(name, call.memory);
  schedule_.steps.clear();
  schedule_.longest = 0;
  try {
    plan(schedule_, space);
    pipeline_.run(schedule_.steps, space, call.dtype, call.op, schedule_.longest);
  } catch (const CommError& failure) {
    const bool names_nobody = failure.status() == CommStatus::timeout && messages_.awaited() >= 0;
    const int cause = failure.status() == CommStatus::peer_lost ? messages_.culprit() : host_.rank();
    fail(failure.status(), cause,
         failure.what() + (names_nobody ? ", from rank " + std::to_string(messages_.awaited()) : ""), name);
  } catch (const std::bad_alloc&) {
    fail(CommStatus::no_memory, host_.rank(), std::string(name) + ": out of memory", name);
  }
}

template <class Body>
void UcxCommunicator::run_on_node(const char* name, Body&& body) {
  if (failure_) throw *failure_;
  try {
    body();
  } catch (const CommError& failure) {
    if (failure.status() == CommStatus::no_memory) throw;  // on all ranks of the host, which can continue
    const int cause = failure.status() == CommStatus::peer_lost ? node_->culprit() : host_.rank();
    fail(failure.status(), cause, failure.what(), name);
  }
}

// Closing notifies the peers that are in this collective or will call it: none waits for the deadline.
void UcxCommunicator::fail(CommStatus status, int cause, const std::string& why, const char* name) {
  const auto silent = status == CommStatus::peer_lost ? messages_.silent_ranks() : std::vector<int>();
  failure_.emplace(status, silent.empty() ? why : std::string(name) + ": " + host::Silence::text(silent));
  if (node_ != nullptr) node_->leave(cause);
  const OnGpu here(gpu_.get());
  messages_.close(cause);
  throw *failure_;
}

Work UcxCommunicator::allreduce(const Collective& call) {
  const Algorithm algorithm = asked_ ? *asked_ : choice_.algorithm(call.memory, bytes_of(call));
  if (algorithm == Algorithm::hierarchical) {
    is_alone() ? run("allreduce", call, [&](Schedule&, MemorySpace& space) { copy(call, call.recv, space); })
               : hierarchical_allreduce(call);
    return {*this, hierarchical_};
  }
  if (call.count > 0) {
    run("allreduce", call, [&](Schedule& schedule, MemorySpace& space) {
      if (is_alone()) return copy(call, call.recv, space);
      over_ucx(algorithm, group_, call, schedule);
    });
  }
  return {*this, algorithm == Algorithm::tree ? tree_ : ring_};
}

void UcxCommunicator::hierarchical_allreduce(const Collective& call) {
  const int hosts = static_cast<int>(leaders_.size());
  Collective within = call;
  if (hosts > 1 && call.op == Op::avg) within.op = Op::sum;  // the leaders divide
  run_on_node("allreduce", [&] { node_->allreduce(within, shm::Algorithm::automatic); });
  if (hosts == 1 || call.count == 0) return;

  Collective between = call;
  between.send = call.recv;
  const int leader = node_->ranks().front();
  if (leader != host_.rank()) {
    messages_.begin("allreduce", call.memory);  // messages are numbered by collective, alike on all ranks
  } else {
    const auto host = std::find(leaders_.begin(), leaders_.end(), leader) - leaders_.begin();
    run("allreduce", call, [&](Schedule& schedule, MemorySpace&) {
      const Group group = {static_cast<int>(host), hosts};
      over_ucx(choice_.between_hosts(bytes_of(call)), group, between, schedule);
      for (Step& step : schedule.steps) {
        if (step.to != Step::kNobody) step.to = leaders_[step.to];
        if (step.from != Step::kNobody) step.from = leaders_[step.from];
      }
    });
  }
  run_on_node("allreduce", [&] { node_->spread(call.recv, bytes_of(call), leader); });
}

std::shared_ptr<void> UcxCommunicator::allocate(std::size_t bytes) {
  if (node_ == nullptr) {
    const auto alone = [](const void* mine, std::size_t size, void* all) { std::memcpy(all, mine, size); };
    return {own_memory_.alloc(bytes, alone), [this](void* owned) { own_memory_.free(owned); }};
  }
  void* memory = nullptr;
  run_on_node("alloc", [&] { memory = node_->alloc(bytes); });
  return {memory, [this](void* owned) { node_->free(owned); }};
}

Work UcxCommunicator::broadcast(const Collective& call) {
  if (!is_alone() && call.count > 0) {
    run("broadcast", call, [&](Schedule& schedule, MemorySpace&) { tree_broadcast(group_, call, schedule); });
  }
  return {*this, tree_};
}

Work UcxCommunicator::allgather(const Collective& call) {
  if (call.count > 0) {
    run("allgather", call, [&](Schedule& schedule, MemorySpace& space) {
      copy(call, static_cast<std::byte*>(call.recv) + static_cast<uint64_t>(group_.rank) * bytes_of(call), space);
      if (!is_alone()) ring_allgather(group_, call, schedule);
    });
  }
  return {*this, ring_};
}

Work UcxCommunicator::reduce_scatter(const Collective& call) {
  if (call.count > 0) {
    run("reduce_scatter", call, [&](Schedule& schedule, MemorySpace& space) {
      is_alone() ? copy(call, call.recv, space) : pairwise_reduce_scatter(group_, call, schedule);
    });
  }
  return {*this, pairwise_};
}

Work UcxCommunicator::barrier() {
  if (!is_alone()) {
    Collective nothing = {};
    nothing.dtype = DType::uint8;
    nothing.memory = Memory::host;
    run("barrier", nothing, [&](Schedule& schedule, MemorySpace&) { dissemination_barrier(group_, schedule); });
  }
  return {*this, dissemination_};
}

void UcxCommunicator::abort() noexcept {
  messages_.abort();
  if (node_ != nullptr) node_->abort();
}

}  // namespace ddprun::ucx_backend
