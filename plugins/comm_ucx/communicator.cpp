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

uint64_t bytes_of(const ddprun_collective& call) {
  return call.count * size_of(call.dtype);
}

void copy(const ddprun_collective& call, void* to, MemorySpace& space) {
  if (call.send != to) space.copy(to, call.send, bytes_of(call));
}

}  // namespace

UcxCommunicator::UcxCommunicator(const Host& host)
    : host_(checked(host)),
      group_{host.rank(), host.size()},
      gpu_(host.device() < 0 ? nullptr : std::make_unique<const Gpu>(host.device())),
      messages_(host),
      shared_(host, messages_.why_no_shared_memory(), [this] { return messages_.ended(); }),
      choice_(host, shared_.is_usable() && shared_.leaders().size() < static_cast<std::size_t>(host.size())),
      pipeline_(messages_, host.size()) {
  const bool wants_shared = host.algorithm() == "auto" ? choice_.may_take(Way::shared) : host.algorithm() == "shared";
  if (wants_shared && !shared_.is_usable()) {
    throw Failure(DDPRUN_UNSUPPORTED, "algorithm \"shared\": " + shared_.why_not());
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
  shared_transports_ = shared_.leaders().size() == 1 ? "memory" : "memory," + transports;
  ring_ = {"ring", transports.c_str()};
  tree_ = {"tree", transports.c_str()};
  shared_request_ = {"shared", shared_transports_.c_str()};
  pairwise_ = {"pairwise", transports.c_str()};
  dissemination_ = {"dissemination", transports.c_str()};
}

UcxCommunicator::~UcxCommunicator() {
  const OnGpu here(gpu_.get());
  gpu_space_.reset();
  messages_.disconnect();
}

MemorySpace& UcxCommunicator::space_of(int32_t memory) {
  if (memory != DDPRUN_CUDA) return host_space_;
  if (gpu_space_ != nullptr) return *gpu_space_;
  throw Failure(DDPRUN_UNSUPPORTED, "memory of a GPU, but this communicator was made for the host's");
}

bool UcxCommunicator::needs_messages() const {
  const bool all_share = shared_.is_usable() && shared_.leaders().size() == 1;
  const bool only_shared =
      host_.algorithm() == "shared" ||
      (host_.algorithm() == "auto" && !choice_.may_take(Way::ring) && !choice_.may_take(Way::tree));
  return !all_share || !only_shared || messages_.are_transports_given();
}

template <class Plan>
void UcxCommunicator::run(const char* name, const ddprun_collective& call, Plan&& plan) {
  if (failure_) throw *failure_;
  MemorySpace& space = space_of(call.memory);
  const OnGpu here(gpu_.get());
  messages_.begin(name, call.memory);
  schedule_.steps.clear();
  schedule_.longest = 0;
  try {
    plan(schedule_, space);
    pipeline_.run(schedule_.steps, space, call.dtype, call.op, schedule_.longest);
  } catch (const Failure& failure) {
    const bool names_nobody = failure.status() == DDPRUN_TIMEOUT && messages_.awaited() >= 0;
    const int cause = failure.status() == DDPRUN_PEER_LOST ? messages_.culprit() : host_.rank();
    fail(failure.status(), cause,
         failure.what() + (names_nobody ? ", from rank " + std::to_string(messages_.awaited()) : ""));
  } catch (const std::bad_alloc&) {
    fail(DDPRUN_NO_MEMORY, host_.rank(), std::string(name) + ": out of memory");
  }
}

template <class Body>
void UcxCommunicator::run_shared(Body&& body) {
  if (failure_) throw *failure_;
  try {
    body();
  } catch (const Failure& failure) {
    if (failure.status() == DDPRUN_NO_MEMORY) throw;  // on all ranks of the host, which can go on
    const int cause = failure.status() == DDPRUN_PEER_LOST ? shared_.culprit() : host_.rank();
    fail(failure.status(), cause, failure.what());
  }
}

// Closing tells the peers, which are in this collective or will be: none waits for the deadline.
void UcxCommunicator::fail(ddprun_status status, int cause, const std::string& why) {
  failure_.emplace(status, why);
  shared_.leave(cause);
  const OnGpu here(gpu_.get());
  messages_.close(cause);
  throw *failure_;
}

Way UcxCommunicator::way_of(const ddprun_collective& call) const {
  const std::string& asked = host_.algorithm();
  if (asked != "auto") return way_named(asked);
  return call.memory == DDPRUN_CUDA ? choice_.way_on_gpus(group_.size, bytes_of(call))
                                    : choice_.way(group_.size, bytes_of(call));
}

Request& UcxCommunicator::allreduce(const ddprun_collective& call) {
  const Way way = way_of(call);
  if (way == Way::shared && !is_alone()) {
    shared_allreduce(call);
  } else if (call.count > 0) {
    run("allreduce", call, [&](Schedule& schedule, MemorySpace& space) {
      if (is_alone()) return copy(call, call.recv, space);
      way == Way::tree ? tree_allreduce(group_, call, schedule) : ring_allreduce(group_, call, schedule);
    });
  }
  return way == Way::shared ? shared_request_ : way == Way::tree ? tree_ : ring_;
}

void UcxCommunicator::shared_allreduce(const ddprun_collective& call) {
  const auto& leaders = shared_.leaders();
  const int hosts = static_cast<int>(leaders.size());
  ddprun_collective within = call;
  if (hosts > 1 && call.op == DDPRUN_AVG) within.op = DDPRUN_SUM;  // the leaders divide
  run_shared([&] { shared_.allreduce(within); });
  if (hosts == 1 || call.count == 0) return;

  ddprun_collective between = call;
  between.send = call.recv;
  const int leader = shared_.ranks().front();
  if (leader == host_.rank()) {
    const auto host = std::find(leaders.begin(), leaders.end(), leader) - leaders.begin();
    run("allreduce", call, [&](Schedule& schedule, MemorySpace&) {
      const Group group = {static_cast<int>(host), hosts};
      choice_.way_of_messages(hosts, bytes_of(call)) == Way::tree ? tree_allreduce(group, between, schedule)
                                                                  : ring_allreduce(group, between, schedule);
      for (Step& step : schedule.steps) {
        if (step.to != Step::kNobody) step.to = leaders[step.to];
        if (step.from != Step::kNobody) step.from = leaders[step.from];
      }
    });
  }
  run_shared([&] { shared_.spread(call.recv, bytes_of(call), leader); });
}

void* UcxCommunicator::alloc(uint64_t bytes) {
  void* memory = nullptr;
  run_shared([&] { memory = shared_.alloc(bytes); });
  return memory;
}

void UcxCommunicator::free(void* memory) noexcept {
  shared_.free(memory);
}

Request& UcxCommunicator::broadcast(const ddprun_collective& call) {
  if (!goes_by_messages(call)) {
    if (call.count > 0) run_shared([&] { shared_.broadcast(call); });
    return shared_request_;
  }
  if (!is_alone() && call.count > 0) {
    run("broadcast", call, [&](Schedule& schedule, MemorySpace&) { tree_broadcast(group_, call, schedule); });
  }
  return tree_;
}

Request& UcxCommunicator::allgather(const ddprun_collective& call) {
  if (!goes_by_messages(call)) {
    if (call.count > 0) run_shared([&] { shared_.allgather(call); });
    return shared_request_;
  }
  if (call.count > 0) {
    run("allgather", call, [&](Schedule& schedule, MemorySpace& space) {
      copy(call, static_cast<std::byte*>(call.recv) + static_cast<uint64_t>(group_.rank) * bytes_of(call), space);
      if (!is_alone()) ring_allgather(group_, call, schedule);
    });
  }
  return ring_;
}

Request& UcxCommunicator::reduce_scatter(const ddprun_collective& call) {
  if (!goes_by_messages(call)) {
    if (call.count > 0) run_shared([&] { shared_.reduce_scatter(call); });
    return shared_request_;
  }
  if (call.count > 0) {
    run("reduce_scatter", call, [&](Schedule& schedule, MemorySpace& space) {
      is_alone() ? copy(call, call.recv, space) : pairwise_reduce_scatter(group_, call, schedule);
    });
  }
  return pairwise_;
}

Request& UcxCommunicator::barrier() {
  if (!has_messages_) {
    run_shared([&] { shared_.barrier(); });
    return shared_request_;
  }
  if (!is_alone()) {
    ddprun_collective nothing = {};
    nothing.dtype = DDPRUN_UINT8;
    nothing.memory = DDPRUN_HOST;
    run("barrier", nothing, [&](Schedule& schedule, MemorySpace&) { dissemination_barrier(group_, schedule); });
  }
  return dissemination_;
}

void UcxCommunicator::abort() noexcept {
  messages_.abort();
  shared_.abort();
}

}  // namespace ddprun::ucx_backend
