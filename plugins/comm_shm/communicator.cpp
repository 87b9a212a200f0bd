#include "communicator.hpp"

#include <string>

namespace ddprun::shm_backend {
namespace {

using shm::Collectives, shm::Waiter;

constexpr char kInstead[] = "; use comm.backend = \"ucx\" or \"gloo\"";

// Throws CommError, the same on all ranks, if the ranks are on several hosts.
std::vector<host::Process> processes_on_one_host(const Host& host) {
  const auto processes = host::processes_of(host);
  const auto leaders = host::leaders_of(processes);
  if (leaders.size() == 1) return processes;
  throw CommError(CommStatus::unsupported, "shm is for ranks that share a host, and rank " +
                                               std::to_string(leaders[1]) +
                                               " does not share rank 0's kernel, IPC and PID namespaces" + kInstead);
}

shm::Algorithm algorithm_named(const std::string& name) {
  if (name == "direct") return shm::Algorithm::direct;
  return name == "staged" ? shm::Algorithm::staged : shm::Algorithm::automatic;
}

}  // namespace

ShmCommunicator::ShmCommunicator(const Host& host)
    : CommBackend(host), algorithm_(algorithm_named(host.algorithm())), group_(host, processes_on_one_host(host)) {
  if (!group_.is_usable()) {
    throw CommError(CommStatus::unsupported, "the ranks cannot share memory: " + group_.why_not() + kInstead);
  }
}

template <class Body>
Work ShmCommunicator::run(const char* name, Request& by, const Body& body) {
  if (failure_) throw *failure_;
  try {
    group_.run(name, body);
  } catch (const CommError& failure) {
    // Thrown on all ranks alike, which can continue.
    if (failure.status() != CommStatus::unsupported) failure_ = failure;
    throw;
  }
  return {*this, by};
}

Work ShmCommunicator::allreduce(const Collective& call) {
  auto served = shm::Algorithm::staged;
  run("allreduce", staged_,
      [&](Collectives& all, Waiter& waiter) { served = all.allreduce(call, algorithm_, waiter); });
  return {*this, served == shm::Algorithm::direct ? direct_ : staged_};
}

Work ShmCommunicator::broadcast(const Collective& call) {
  const uint64_t bytes = call.count * size_of(call.dtype);
  const auto root = static_cast<std::size_t>(call.root);
  return run("broadcast", staged_,
             [&](Collectives& all, Waiter& waiter) { all.broadcast(call.recv, bytes, root, waiter); });
}

Work ShmCommunicator::allgather(const Collective& call) {
  return run("allgather", staged_, [&](Collectives& all, Waiter& waiter) { all.allgather(call, waiter); });
}

Work ShmCommunicator::reduce_scatter(const Collective& call) {
  return run("reduce_scatter", staged_, [&](Collectives& all, Waiter& waiter) { all.reduce_scatter(call, waiter); });
}

Work ShmCommunicator::barrier() {
  return run("barrier", staged_, [](Collectives& all, Waiter& waiter) { all.barrier_of_all(waiter); });
}

Work ShmCommunicator::exchange(const Exchange& call) {
  return run("exchange", pairwise_, [&](Collectives& all, Waiter& waiter) { all.exchange(call, waiter); });
}

std::shared_ptr<void> ShmCommunicator::allocate(std::size_t bytes) {
  if (failure_) throw *failure_;
  return {group_.alloc(bytes), [this](void* owned) { group_.free(owned); }};
}

}  // namespace ddprun::shm_backend
