#include "communicator.hpp"

#include <algorithm>
#include <new>

#include "gpu_space.hpp"

namespace ddprun::ucx_backend {
namespace {

const Host& checked(const Host& host) {
  host.refuse_options_beyond({"tls", "devices", "tuning"});
  return host;
}

uint64_t bytes_of(const Collective& call) {
  return call.count * size_of(call.dtype);
}

void copy(const Collective& call, void* to, MemorySpace& space) {
  if (call.send != to) space.copy(to, call.send, bytes_of(call));
}

}  // namespace

UcxCommunicator::UcxCommunicator(const Host& host)
    : CommBackend(host),
      host_(checked(host)),
      group_{host.rank(), host.size()},
      gpu_(host.device() < 0 ? nullptr : std::make_unique<const Gpu>(host.device())),
      messages_(host),
      leaders_(host::leaders_of(messages_.places())),
      shared_(host, messages_.places()),
      choice_(host, shared_.is_usable() && leaders_.size() < static_cast<std::size_t>(host.size())),
      pipeline_(messages_, host.size()) {
  const bool wants_shared = host.algorithm() == "auto" ? choice_.may_take(Algorithm::shared) : host.algorithm() == "shared";
  if (wants_shared && !shared_.is_usable()) {
    throw CommError(CommStatus::unsupported, "algorithm \"shared\": " + shared_.why_not());
  }
  const OnGpu here(gpu_.get());
  has_messages_ = needs_messages();
  try {
    if (has_messages_ || gpu_ != nullptr) messages_.connect();
    if (gpu_ != nullptr) gpu_space_ = std::make_unique<GpuSpace>(*gpu_, messages_);
  } catch (...) {
    messages_.disconnect();  // on the GPU
    throw;
  }
  if (!has_messages_ && !is_alone() && gpu_ == nullptr) {
    host.log(host.rank() == 0 ? DDPRUN_LOG_INFO : DDPRUN_LOG_DEBUG,
             "the ranks share memory: no transport of UCX is used");
  }
  const std::string& transports = messages_.transports();
  shared_transports_ = leaders_.size() == 1 ? "memory" : "memory," + transports;
  ring_.info = {"ring", transports.c_str()};
  tree_.info = {"tree", transports.c_str()};
  shared_request_.info = {"shared", shared_transports_.c_str()};
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
  throw CommError(CommStatus::unsupported, "memory of a GPU, but this communicator was made for the host's");
}

bool UcxCommunicator::needs_messages() const {
  const bool all_share = shared_.is_usable() && leaders_.size() == 1;
  const bool only_shared =
      host_.algorithm() == "shared" ||
      (host_.algorithm() == "auto" && !choice_.may_take(Algorithm::ring) && !choice_.may_take(Algorithm::tree));
  return !all_share || !only_shared || messages_.are_transports_given();
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
         failure.what() + (names_nobody ? ", from rank " + std::to_string(messages_.awaited()) : ""));
  } catch (const std::bad_alloc&) {
    fail(CommStatus::no_memory, host_.rank(), std::string(name) + ": out of memory");
  }
}

template <class Body>
void UcxCommunicator::run_shared(Body&& body) {
  if (failure_) throw *failure_;
  try {
    body();
  } catch (const CommError& failure) {
    if (failure.status() == CommStatus::no_memory) throw;  // on all ranks of the host, which can go on
    const int cause = failure.status() == CommStatus::peer_lost ? shared_.culprit() : host_.rank();
    fail(failure.status(), cause, failure.what());
  }
}

// Closing tells the peers, which are in this collective or will be: none waits for the deadline.
void UcxCommunicator::fail(CommStatus status, int cause, const std::string& why) {
  failure_.emplace(status, why);
  shared_.leave(cause);
  const OnGpu here(gpu_.get());
  messages_.close(cause);
  throw *failure_;
}

Algorithm UcxCommunicator::algorithm_of(const Collective& call) const {
  const std::string& asked = host_.algorithm();
  if (asked != "auto") return algorithm_named(asked);
  return call.memory == Memory::cuda ? choice_.algorithm_on_gpus(group_.size, bytes_of(call))
                                    : choice_.algorithm(group_.size, bytes_of(call));
}

Work UcxCommunicator::allreduce(const Collective& call) {
  const Algorithm algorithm = algorithm_of(call);
  if (algorithm == Algorithm::shared && !is_alone()) {
    shared_allreduce(call);
  } else if (call.count > 0) {
    run("allreduce", call, [&](Schedule& schedule, MemorySpace& space) {
      if (is_alone()) return copy(call, call.recv, space);
      algorithm == Algorithm::tree ? tree_allreduce(group_, call, schedule) : ring_allreduce(group_, call, schedule);
    });
  }
  return {*this, algorithm == Algorithm::shared ? shared_request_ : algorithm == Algorithm::tree ? tree_ : ring_};
}

void UcxCommunicator::shared_allreduce(const Collective& call) {
  const int hosts = static_cast<int>(leaders_.size());
  Collective within = call;
  if (hosts > 1 && call.op == Op::avg) within.op = Op::sum;  // the leaders divide
  run_shared([&] { shared_.allreduce(within, shm::Algorithm::automatic); });
  if (hosts == 1 || call.count == 0) return;

  Collective between = call;
  between.send = call.recv;
  const int leader = shared_.ranks().front();
  if (leader == host_.rank()) {
    const auto host = std::find(leaders_.begin(), leaders_.end(), leader) - leaders_.begin();
    run("allreduce", call, [&](Schedule& schedule, MemorySpace&) {
      const Group group = {static_cast<int>(host), hosts};
      choice_.algorithm_of_messages(hosts, bytes_of(call)) == Algorithm::tree ? tree_allreduce(group, between, schedule)
                                                                  : ring_allreduce(group, between, schedule);
      for (Step& step : schedule.steps) {
        if (step.to != Step::kNobody) step.to = leaders_[step.to];
        if (step.from != Step::kNobody) step.from = leaders_[step.from];
      }
    });
  }
  run_shared([&] { shared_.spread(call.recv, bytes_of(call), leader); });
}

std::shared_ptr<void> UcxCommunicator::allocate(std::size_t bytes) {
  void* memory = nullptr;
  run_shared([&] { memory = shared_.alloc(bytes); });
  return {memory, [this](void* owned) { shared_.free(owned); }};
}

Work UcxCommunicator::broadcast(const Collective& call) {
  if (!goes_by_messages(call)) {
    if (call.count > 0) run_shared([&] { shared_.broadcast(call); });
    return {*this, shared_request_};
  }
  if (!is_alone() && call.count > 0) {
    run("broadcast", call, [&](Schedule& schedule, MemorySpace&) { tree_broadcast(group_, call, schedule); });
  }
  return {*this, tree_};
}

Work UcxCommunicator::allgather(const Collective& call) {
  if (!goes_by_messages(call)) {
    if (call.count > 0) run_shared([&] { shared_.allgather(call); });
    return {*this, shared_request_};
  }
  if (call.count > 0) {
    run("allgather", call, [&](Schedule& schedule, MemorySpace& space) {
      copy(call, static_cast<std::byte*>(call.recv) + static_cast<uint64_t>(group_.rank) * bytes_of(call), space);
      if (!is_alone()) ring_allgather(group_, call, schedule);
    });
  }
  return {*this, ring_};
}

Work UcxCommunicator::reduce_scatter(const Collective& call) {
  if (!goes_by_messages(call)) {
    if (call.count > 0) run_shared([&] { shared_.reduce_scatter(call); });
    return {*this, shared_request_};
  }
  if (call.count > 0) {
    run("reduce_scatter", call, [&](Schedule& schedule, MemorySpace& space) {
      is_alone() ? copy(call, call.recv, space) : pairwise_reduce_scatter(group_, call, schedule);
    });
  }
  return {*this, pairwise_};
}

Work UcxCommunicator::barrier() {
  if (!has_messages_) {
    run_shared([&] { shared_.barrier(); });
    return {*this, shared_request_};
  }
  if (!is_alone()) {
    Collective nothing;
    nothing.dtype = DType::uint8;
    nothing.memory = Memory::host;
    run("barrier", nothing, [&](Schedule& schedule, MemorySpace&) { dissemination_barrier(group_, schedule); });
  }
  return {*this, dissemination_};
}

void UcxCommunicator::abort() noexcept {
  messages_.abort();
  shared_.abort();
}

}  // namespace ddprun::ucx_backend
