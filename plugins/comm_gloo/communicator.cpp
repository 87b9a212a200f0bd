#include "communicator.hpp"

#include <cstring>

#include "sigpipe.hpp"

namespace ddprun::gloo_backend {
namespace {

// With one rank the result is the input, for avg too.
void copy(const Collective& call) {
  if (call.count > 0 && call.send != call.recv) std::memcpy(call.recv, call.send, call.count * size_of(call.dtype));
}

}  // namespace

GlooCommunicator::GlooCommunicator(const Host& host)
    : CommBackend(host),
      host_(host),
      asked_(algorithm_named(host.algorithm())),
      tuning_(tuning_for(host)),
      mesh_(host) {}

template <class Body>
void GlooCommunicator::over_mesh(const char* name, Body&& body) {
  if (failure_) throw *failure_;
  const NoSigpipe quiet;
  mesh_.begin(name);
  try {
    body(Run{mesh_, arrived_, sums_, host_.rank(), host_.size()});
  } catch (const ConnectionLost& lost) {
    const std::string peer = "rank " + std::to_string(lost.peer());
    if (mesh_.is_late()) {
      fail(name, CommStatus::timeout,
           "no answer from " + peer + " within " + std::to_string(host_.deadline().count()) + " ms (" + lost.what() +
               ")");
    }
    if (const auto silent = mesh_.silent_ranks(); !silent.empty()) {
      fail(name, CommStatus::peer_lost, host::Silence::text(silent));
    }
    fail(name, CommStatus::peer_lost, "lost " + peer + ": " + lost.what());
  } catch (const CommError& error) {
    mesh_.close();
    failure_ = error;
    throw;
  } catch (const std::bad_alloc&) {
    fail(name, CommStatus::no_memory, "out of memory");
  } catch (const std::exception& error) {
    fail(name, CommStatus::internal, error.what());
  }
}

// Closing wakes the peers that are in this collective or will call it: none waits for the deadline.
void GlooCommunicator::fail(const char* name, CommStatus status, const std::string& why) {
  mesh_.close();
  failure_.emplace(status, std::string(name) + ": " + why);
  throw *failure_;
}

Algorithm GlooCommunicator::algorithm_of(const Collective& call) const {
  if (asked_) return *asked_;
  return static_cast<Algorithm>(tuning_.index(host_.size(), call.count * size_of(call.dtype)));
}

Work GlooCommunicator::allreduce(const Collective& call) {
  const Algorithm algorithm = algorithm_of(call);
  if (host_.size() == 1) {
    copy(call);
  } else if (call.count > 0) {
    over_mesh("allreduce", [&](const Run& run) {
      switch (algorithm) {
        case Algorithm::ring: return ring_allreduce(run, call);
        case Algorithm::tree: return tree_allreduce(run, call);
        case Algorithm::halving_doubling: return halving_doubling_allreduce(run, call);
        case Algorithm::doubling: return doubling_allreduce(run, call);
      }
    });
  }
  return {*this, allreduce_[static_cast<std::size_t>(algorithm)]};
}

Work GlooCommunicator::broadcast(const Collective& call) {
  if (host_.size() > 1 && call.count > 0) {
    over_mesh("broadcast", [&](const Run& run) { tree_broadcast(run, call); });
  }
  return {*this, broadcast_};
}

Work GlooCommunicator::allgather(const Collective& call) {
  if (host_.size() == 1) {
    copy(call);
  } else if (call.count > 0) {
    over_mesh("allgather", [&](const Run& run) { ring_allgather(run, call); });
  }
  return {*this, ring_};
}

Work GlooCommunicator::reduce_scatter(const Collective& call) {
  if (host_.size() == 1) {
    copy(call);
  } else if (call.count > 0) {
    over_mesh("reduce_scatter", [&](const Run& run) { ring_reduce_scatter(run, call); });
  }
  return {*this, ring_};
}

Work GlooCommunicator::barrier() {
  if (host_.size() > 1) over_mesh("barrier", [&](const Run& run) { dissemination_barrier(run); });
  return {*this, dissemination_};
}

void GlooCommunicator::abort() noexcept {
  mesh_.abort();
}

}  // namespace ddprun::gloo_backend
