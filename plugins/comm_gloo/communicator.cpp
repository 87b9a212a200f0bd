#include "communicator.hpp"

#include <cstring>

#include "sigpipe.hpp"
#include "transport.hpp"

namespace ddprun::gloo_backend {
namespace {

const Host& checked(const Host& host) {
  host.refuse_options_beyond({"busy_poll", "interface", "tuning"});
  return host;
}

// A world of one: the result is the input, and so it is for avg.
void copy(const ddprun_collective& call) {
  if (call.count > 0 && call.send != call.recv) std::memcpy(call.recv, call.send, call.count * size_of(call.dtype));
}

}  // namespace

GlooCommunicator::GlooCommunicator(const Host& host) : host_(checked(host)), tuning_(tuning_for(host)), mesh_(host) {}

template <class Body>
void GlooCommunicator::over_mesh(const char* name, Body&& body) {
  if (failure_) throw *failure_;
  const NoSigpipe quiet;
  mesh_.watchdog().begin();
  try {
    body(Run{mesh_.context(), scratch_, tag_++});
  } catch (const ConnectionLost& lost) {
    const std::string peer = "rank " + std::to_string(lost.peer());
    if (mesh_.watchdog().is_late()) {
      fail(name, DDPRUN_TIMEOUT,
           "no answer from " + peer + " within " + std::to_string(host_.deadline().count()) + " ms (" + lost.what() +
               ")");
    }
    fail(name, DDPRUN_PEER_LOST, "lost " + peer + ": " + lost.what());
  } catch (const std::bad_alloc&) {
    fail(name, DDPRUN_NO_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    fail(name, DDPRUN_INTERNAL, error.what());
  }
}

// Closing tells the peers, which are in this collective or will be: none waits for the deadline.
void GlooCommunicator::fail(const char* name, ddprun_status status, const std::string& why) {
  mesh_.close();
  failure_.emplace(status, std::string(name) + ": " + why);
  throw *failure_;
}

GlooCommunicator::Way GlooCommunicator::way_of(const std::string& algorithm) {
  if (algorithm == "tree") return {tree_allreduce, tree_};
  if (algorithm == "halving_doubling") return {halving_doubling_allreduce, halving_doubling_};
  return {ring_allreduce, ring_};
}

Request& GlooCommunicator::allreduce(const ddprun_collective& call) {
  const std::string& asked = host_.algorithm();
  const uint64_t bytes = call.count * size_of(call.dtype);
  const Way way = way_of(asked == "auto" ? tuning_.algorithm(host_.size(), bytes) : asked);
  if (host_.size() == 1) {
    copy(call);
  } else if (call.count > 0) {
    over_mesh("allreduce", [&](const Run& run) { way.run(run, call); });
  }
  return way.served;
}

Request& GlooCommunicator::broadcast(const ddprun_collective& call) {
  if (host_.size() > 1 && call.count > 0) {
    over_mesh("broadcast", [&](const Run& run) { tree_broadcast(run, call); });
  }
  return tree_;
}

Request& GlooCommunicator::allgather(const ddprun_collective& call) {
  if (host_.size() == 1) {
    copy(call);
  } else if (call.count > 0) {
    over_mesh("allgather", [&](const Run& run) { ring_allgather(run, call); });
  }
  return ring_;
}

Request& GlooCommunicator::reduce_scatter(const ddprun_collective& call) {
  if (host_.size() == 1) {
    copy(call);
  } else if (call.count > 0) {
    over_mesh("reduce_scatter", [&](const Run& run) { ring_reduce_scatter(run, call); });
  }
  return ring_;
}

Request& GlooCommunicator::barrier() {
  if (host_.size() > 1) over_mesh("barrier", [&](const Run& run) { dissemination_barrier(run); });
  return dissemination_;
}

void GlooCommunicator::abort() noexcept {
  mesh_.watchdog().abort();
}

}  // namespace ddprun::gloo_backend
