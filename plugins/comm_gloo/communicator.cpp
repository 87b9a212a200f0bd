#include "communicator.hpp"

#include <cstring>

#include "sockets.hpp"

namespace ddprun::gloo_backend {
namespace {

// With one rank the result is the input, for avg too.
void copy(const Collective& call) {
  if (call.count > 0 && call.send != call.recv) std::memcpy(call.recv, call.send, call.count * size_of(call.dtype));
}

}  // namespace

GlooCommunicator::GlooCommunicator(const Host& host, const std::vector<host::Process>& processes)
    : CommBackend(host),
      host_(host),
      asked_(host.algorithm_as<Algorithm>(kAlgorithms)),
      hierarchy_(shm::Hierarchy::make(host, processes, asked_ == Algorithm::hierarchical, !asked_)),
      tuning_(tuning_for(host, hierarchy_ != nullptr && hierarchy_->is_usable() && shm::has_two_levels(processes))),
      mesh_(host, processes) {
  const bool is_hierarchical = asked_ ? asked_ == Algorithm::hierarchical : tuning_.uses(host.size(), "hierarchical");
  if (is_hierarchical && hierarchy_ != nullptr) hierarchy_->require_usable("another algorithm of gloo");
  if (hierarchy_ != nullptr && hierarchy_->leaders().size() == 1) {
    allreduce_[static_cast<std::size_t>(Algorithm::hierarchical)].info = {"hierarchical", "memory"};
  }
}

template <class Body>
void GlooCommunicator::over_mesh(const char* name, Body&& body) {
  if (failure_) throw *failure_;
  try {
    const NoSigpipe quiet;
    mesh_.begin(name);
    body();
  } catch (...) {
    fail_over_mesh(name);
  }
}

void GlooCommunicator::fail_over_mesh(const char* name) {
  try {
    throw;
  } catch (const ConnectionLost& lost) {
    const std::string peer = "rank " + std::to_string(lost.peer());
    if (mesh_.is_late()) {
      fail(name, CommStatus::timeout,
           "no answer from " + peer + " within " + std::to_string(host_.deadline().count()) + " ms (" + lost.what() +
               ")");
    }
    fail_if_silent(name);
    fail(name, CommStatus::peer_lost, "lost " + peer + ": " + lost.what(), lost.peer());
  } catch (const CommError& error) {
    fail(error, host_.rank());
  } catch (const std::bad_alloc&) {
    fail(name, CommStatus::no_memory, "out of memory");
  } catch (const std::exception& error) {
    fail(name, CommStatus::internal, error.what());
  }
}

void GlooCommunicator::fail_if_silent(const char* name) {
  const auto silent = mesh_.silent_ranks();
  if (!silent.empty()) fail(name, CommStatus::peer_lost, host::Silence::text(silent), silent.front());
}

void GlooCommunicator::fail(const char* name, CommStatus status, const std::string& why, int cause) {
  fail({status, std::string(name) + ": " + why}, cause >= 0 ? cause : host_.rank());
}

// Closing wakes the peers that are in this collective or will call it: none waits for the deadline.
void GlooCommunicator::fail(const CommError& error, int cause) {
  if (hierarchy_ != nullptr) hierarchy_->node().leave(cause);
  mesh_.close();
  failure_ = error;
  throw error;
}

Algorithm GlooCommunicator::algorithm_of(const Collective& call) const {
  if (asked_) return *asked_;
  const uint64_t bytes = call.count * size_of(call.dtype);
  if (call.canonical_order) return in_canonical_order(bytes);
  return static_cast<Algorithm>(tuning_.index(host_.size(), bytes));
}

void GlooCommunicator::allreduce_over_mesh(const Run& run, Algorithm algorithm, const Collective& call) {
  switch (algorithm) {
    case Algorithm::ring: return ring_allreduce(run, call);
    case Algorithm::tree: return tree_allreduce(run, call);
    case Algorithm::halving_doubling: return halving_doubling_allreduce(run, call);
    case Algorithm::doubling: return doubling_allreduce(run, call);
    case Algorithm::hierarchical: return;  // has two levels
  }
}

void GlooCommunicator::hierarchical_allreduce(const Collective& call) {
  if (failure_) throw *failure_;
  const auto between = [&](const Collective& part) {
    if (!hierarchy_->leads()) return;
    const NoSigpipe quiet;
    mesh_.begin("allreduce");
    Run run = all_ranks();
    run.rank = hierarchy_->host();
    run.size = static_cast<int>(hierarchy_->leaders().size());
    run.members = hierarchy_->leaders();
    allreduce_over_mesh(run, between_hosts(run.size, part.count * size_of(part.dtype)), part);
  };
  try {
    hierarchy_->allreduce(call, {between, [this] { mesh_.abort(); }});
  } catch (const CommError& error) {
    if (hierarchy_->has_failed_between()) fail_over_mesh("allreduce");
    if (error.status() != CommStatus::peer_lost) fail(error, host_.rank());
    fail_if_silent("allreduce");
    fail(error, hierarchy_->node().culprit());
  } catch (...) {
    fail_over_mesh("allreduce");
  }
}

Work GlooCommunicator::allreduce(const Collective& call) {
  const Algorithm algorithm = algorithm_of(call);
  if (host_.size() == 1) {
    copy(call);
  } else if (algorithm == Algorithm::hierarchical) {
    hierarchical_allreduce(call);
  } else if (call.count > 0) {
    over_mesh("allreduce", [&] { allreduce_over_mesh(all_ranks(), algorithm, call); });
  }
  return {*this, allreduce_[static_cast<std::size_t>(algorithm)]};
}

Work GlooCommunicator::broadcast(const Collective& call) {
  if (host_.size() > 1 && call.count > 0) {
    over_mesh("broadcast", [&] { tree_broadcast(all_ranks(), call); });
  }
  return {*this, broadcast_};
}

Work GlooCommunicator::allgather(const Collective& call) {
  if (call.count > 0) over_mesh("allgather", [&] { ring_allgather(all_ranks(), call); });
  return {*this, ring_};
}

Work GlooCommunicator::reduce_scatter(const Collective& call) {
  if (host_.size() == 1) {
    copy(call);
  } else if (call.count > 0) {
    over_mesh("reduce_scatter", [&] { ring_reduce_scatter(all_ranks(), call); });
  }
  return {*this, ring_};
}

Work GlooCommunicator::barrier() {
  if (host_.size() > 1) over_mesh("barrier", [&] { dissemination_barrier(all_ranks()); });
  return {*this, dissemination_};
}

Work GlooCommunicator::exchange(const Exchange& call) {
  over_mesh("exchange", [&] { pairwise_exchange(all_ranks(), call); });
  return {*this, pairwise_};
}

void GlooCommunicator::abort() noexcept {
  mesh_.abort();
  if (hierarchy_ != nullptr) hierarchy_->node().abort();
}

}  // namespace ddprun::gloo_backend
