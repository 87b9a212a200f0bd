#include "communicator.hpp"

#include <string>

namespace ddprun::shm_backend {
namespace {

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

// Closing the group reports the failure to the peers: none of them waits for the deadline.
template <class Body>
void ShmCommunicator::run(const Body& body) {
  if (failure_) throw *failure_;
  try {
    body();
  } catch (const CommError& failure) {
    // Thrown on all ranks alike, which can continue.
    if (failure.status() == CommStatus::no_memory || failure.status() == CommStatus::unsupported) throw;
    failure_ = failure;
    group_.leave(failure.status() == CommStatus::peer_lost ? group_.culprit() : rank());
    throw;
  }
}

Work ShmCommunicator::allreduce(const Collective& call) {
  auto served = shm::Algorithm::staged;
  run([&] { served = group_.allreduce(call, algorithm_); });
  return {*this, served == shm::Algorithm::direct ? direct_ : staged_};
}

Work ShmCommunicator::broadcast(const Collective& call) {
  if (call.count > 0) run([&] { group_.broadcast(call); });
  return {*this, staged_};
}

Work ShmCommunicator::allgather(const Collective& call) {
  if (call.count > 0) run([&] { group_.allgather(call); });
  return {*this, staged_};
}

Work ShmCommunicator::reduce_scatter(const Collective& call) {
  if (call.count > 0) run([&] { group_.reduce_scatter(call); });
  return {*this, staged_};
}

Work ShmCommunicator::barrier() {
  run([&] { group_.barrier(); });
  return {*this, staged_};
}

std::shared_ptr<void> ShmCommunicator::allocate(std::size_t bytes) {
  void* memory = nullptr;
  run([&] { memory = group_.alloc(bytes); });
  return {memory, [this](void* owned) { group_.free(owned); }};
}

}  // namespace ddprun::shm_backend
