#include "communicator.hpp"

#include <cstring>
#include <new>

#include "gpu_space.hpp"
#include "reduction/pairwise.hpp"

namespace ddprun::ucx_backend {
namespace {

uint64_t bytes_of(const Collective& call) {
  return call.count * size_of(call.dtype);
}

void copy(const Collective& call, void* to, MemorySpace& space) {
  if (call.send != to) space.copy(to, call.send, bytes_of(call));
}

void over_ucx(Algorithm algorithm, const Group& group, const Collective& call, Schedule& schedule) {
  // By Algorithm; hierarchical has two levels.
  constexpr decltype(&ring_allreduce) kPlans[] = {ring_allreduce, tree_allreduce, halving_doubling_allreduce};
  kPlans[static_cast<std::size_t>(algorithm)](group, call, schedule);
}

}  // namespace

UcxCommunicator::UcxCommunicator(const Host& host)
    : CommBackend(host),
      host_(host),
      group_{host.rank(), host.size()},
      asked_(host.algorithm_as<Algorithm>(kAlgorithms)),
      gpu_(host.device() < 0 ? nullptr : std::make_unique<const Gpu>(host.device())),
      messages_(host),
      hosts_(static_cast<int>(host::leaders_of(messages_.processes()).size())),
      hierarchy_(shm::Hierarchy::make(host, messages_.processes(), asked_ == Algorithm::hierarchical,
                                      !asked_ && host.device() < 0)),
      choice_(host, hosts_,
              hierarchy_ != nullptr && hierarchy_->is_usable() && shm::has_two_levels(messages_.processes())),
      host_space_(messages_.are_by_memory()),
      pipeline_(messages_, host.size()) {
  const bool is_hierarchical = asked_ ? asked_ == Algorithm::hierarchical : choice_.uses_hierarchical();
  if (is_hierarchical && hierarchy_ != nullptr) hierarchy_->require_usable("\"ring\", \"tree\" or \"halving_doubling\"");
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
  node_transports_ = hosts_ == 1 ? "memory" : "memory," + messages_.transports_between_hosts();
  for (std::size_t i = 0; i < std::size(kAlgorithms); ++i) {
    by_algorithm_[i].info = {kAlgorithms[i].name, transports.c_str()};
  }
  done(Algorithm::hierarchical).info.transport = node_transports_.c_str();
  pairwise_.info = {"pairwise", transports.c_str()};
  dissemination_.info = {"dissemination", transports.c_str()};
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
void UcxCommunicator::try_to_run(const char* name, const Collective& call, MemorySpace& space, Plan&& plan) {
  const OnGpu here(gpu_.get());
  messages_.begin(name, call.memory);
  schedule_.steps.clear();
  schedule_.longest = 0;
  plan(schedule_, space);
  pipeline_.run(schedule_.steps, space, call.dtype, call.op, schedule_.longest);
}

template <class Plan>
void UcxCommunicator::run(const char* name, const Collective& call, Plan&& plan) {
  if (failure_) throw *failure_;
  MemorySpace& space = space_of(call.memory);
  try {
    try_to_run(name, call, space, plan);
  } catch (...) {
    fail_over_ucx(name);
  }
}

void UcxCommunicator::fail_over_ucx(const char* name) {
  try {
    throw;
  } catch (const CommError& failure) {
    const bool names_nobody = failure.status() == CommStatus::timeout && messages_.awaited() >= 0;
    const int cause = failure.status() == CommStatus::peer_lost ? messages_.culprit() : host_.rank();
    fail(failure.status(), cause,
         failure.what() + (names_nobody ? ", from rank " + std::to_string(messages_.awaited()) : ""), name);
  } catch (const std::bad_alloc&) {
    fail(CommStatus::no_memory, host_.rank(), std::string(name) + ": out of memory", name);
  }
}

void UcxCommunicator::fail_on_node(const CommError& failure, const char* name) {
  if (failure.status() == CommStatus::no_memory) throw failure;
  const int cause = failure.status() == CommStatus::peer_lost ? hierarchy_->node().culprit() : host_.rank();
  fail(failure.status(), cause, failure.what(), name);
}

// Closing notifies the peers that are in this collective or will call it: none waits for the deadline.
void UcxCommunicator::fail(CommStatus status, int cause, const std::string& why, const char* name) {
  const auto silent = status == CommStatus::peer_lost ? messages_.silent_ranks() : std::vector<int>();
  failure_.emplace(status, silent.empty() ? why : std::string(name) + ": " + host::Silence::text(silent));
  if (hierarchy_ != nullptr) hierarchy_->node().leave(cause);
  const OnGpu here(gpu_.get());
  messages_.close(cause);
  throw *failure_;
}

Work UcxCommunicator::allreduce(const Collective& call) {
  const Algorithm algorithm = asked_ ? *asked_ : choice_.algorithm(call);
  if (algorithm == Algorithm::hierarchical) {
    is_alone() ? run("allreduce", call, [&](Schedule&, MemorySpace& space) { copy(call, call.recv, space); })
               : hierarchical_allreduce(call);
    return {*this, done(algorithm)};
  }
  if (call.count > 0) {
    run("allreduce", call, [&](Schedule& schedule, MemorySpace& space) {
      if (is_alone()) return copy(call, call.recv, space);
      over_ucx(algorithm, group_, call, schedule);
    });
  }
  return {*this, done(algorithm)};
}

void UcxCommunicator::hierarchical_allreduce(const Collective& call) {
  if (failure_) throw *failure_;
  const auto between = [&](const Collective& part) {
    // Messages are numbered by collective, alike on all ranks.
    if (!hierarchy_->leads()) return messages_.begin("allreduce", part.memory);
    try_to_run("allreduce", part, host_space_, [&](Schedule& schedule, MemorySpace&) {
      const Group leaders = {hierarchy_->host(), hosts_};
      over_ucx(choice_.between_hosts(bytes_of(part)), leaders, part, schedule);
      for (Step& step : schedule.steps) {
        for (int* peer : {&step.to, &step.from}) {
          if (*peer != Step::kNoRank) *peer = hierarchy_->leaders()[*peer];
        }
      }
    });
  };
  try {
    hierarchy_->allreduce(call, {between, [this] { messages_.abort(); }});
  } catch (const CommError& failure) {
    if (!hierarchy_->has_failed_between()) fail_on_node(failure, "allreduce");
    fail_over_ucx("allreduce");
  } catch (const std::bad_alloc&) {
    fail_over_ucx("allreduce");
  }
}

std::shared_ptr<void> UcxCommunicator::allocate(std::size_t bytes) {
  if (hierarchy_ == nullptr) {
    const auto alone = [](const void* mine, std::size_t size, void* all) { std::memcpy(all, mine, size); };
    return {own_memory_.alloc(bytes, alone), [this](void* owned) { own_memory_.free(owned); }};
  }
  if (failure_) throw *failure_;
  try {
    return {hierarchy_->node().alloc(bytes), [this](void* owned) { hierarchy_->node().free(owned); }};
  } catch (const CommError& failure) {
    fail_on_node(failure, "alloc");
  }
}

Work UcxCommunicator::broadcast(const Collective& call) {
  if (!is_alone() && call.count > 0) {
    run("broadcast", call, [&](Schedule& schedule, MemorySpace&) { tree_broadcast(group_, call, schedule); });
  }
  return {*this, done(Algorithm::tree)};
}

Work UcxCommunicator::allgather(const Collective& call) {
  if (call.count > 0) {
    run("allgather", call, [&](Schedule& schedule, MemorySpace& space) {
      copy(call, static_cast<std::byte*>(call.recv) + static_cast<uint64_t>(group_.rank) * bytes_of(call), space);
      if (!is_alone()) ring_allgather(group_, call, schedule);
    });
  }
  return {*this, done(Algorithm::ring)};
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

// Sends are confirmed, so that a rank that only sends is never more than one call ahead of its receivers.
Work UcxCommunicator::exchange(const Exchange& call) {
  const auto move = [&](int to, const Block& out, int from, const Block& in) {
    Transfer arrived, sent;
    if (in.bytes > 0) arrived = messages_.receive({from, 0, in.bytes, true}, in.data);
    if (out.bytes > 0) sent = messages_.send({to, 0, out.bytes, true}, out.data);
    messages_.wait(arrived);
    messages_.wait(sent);
  };
  const Collective bytes = {.dtype = DType::uint8, .memory = call.memory};
  run("exchange", bytes, [&](Schedule&, MemorySpace& space) {
    const auto copy = [&](void* to, const void* from, std::size_t count) { space.copy(to, from, count); };
    reduction::exchange_pairwise(group_.rank, group_.size, call, copy, move);
  });
  return {*this, pairwise_};
}

void UcxCommunicator::abort() noexcept {
  messages_.abort();
  if (hierarchy_ != nullptr) hierarchy_->node().abort();
}

}  // namespace ddprun::ucx_backend
