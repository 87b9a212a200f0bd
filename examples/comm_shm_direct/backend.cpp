#include "backend.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "reduce.hpp"

namespace shm_direct {
namespace {

using ddprun::CommError;
using ddprun::CommStatus;

std::byte* at(void* data, std::size_t bytes) {
  return static_cast<std::byte*>(data) + bytes;
}
const std::byte* at(const void* data, std::size_t bytes) {
  return static_cast<const std::byte*>(data) + bytes;
}

}  // namespace

Backend::Backend(const ddprun::Host& host)
    : CommBackend(host),
      host_(host),
      slot_bytes_(host.options().size("slot") / 64 * 64),  // slots begin at cache lines
      segment_(host, slot_bytes_) {}

Backend::~Backend() {
  segment_.state(rank()).left.store(1);
  segment_.ring();
}

ddprun::Work Backend::start(Kind kind, const ddprun::Collective& call) {
  if (failure_) throw CommError(*failure_);
  if (free_.empty()) free_.emplace_back();
  free_.front() = {};
  Operation& operation = free_.front();
  operation.info = {"direct", "memory"};
  operation.kind = kind;
  operation.call = call;
  operation.deadline = Clock::now() + host_.deadline();
  operation.done = kind != Kind::barrier && call.count == 0;
  operations_.splice(operations_.end(), free_, free_.begin());
  progress();
  return {*this, operation};
}

void Backend::progress() {
  for (Operation& operation : operations_) {
    if (!operation.done) operation.done = carry_out(operation);
    if (!operation.done) return;
  }
}

// Whether the operation has ended.
bool Backend::carry_out(Operation& operation) {
  const auto& call = operation.call;
  const std::size_t element = ddprun::size_of(call.dtype), most = slot_bytes_ / element;
  while (true) {
    const std::size_t count = std::min(most, call.count - operation.first);
    if (operation.step == Step::write) {
      if (!write(operation, count * element)) return false;
      operation.step = Step::reduce;
    }
    if (operation.step == Step::reduce) {
      if (!reduce(operation, count)) return false;
      operation.step = Step::read;
    }
    if (!read(operation, count * element)) return false;
    enter(finished(piece_));
    ++piece_;
    operation.first += count;
    operation.step = Step::write;
    if (operation.first >= call.count) return true;
  }
}

// Copies this rank's data into its slot, when all have finished the piece before the last one, which was there.
bool Backend::write(const Operation& operation, std::size_t bytes) {
  const auto& call = operation.call;
  const bool broadcasts = operation.kind == Kind::broadcast;
  if (broadcasts && rank() != call.root) return true;
  if (!everyone_reached(finished(piece_ - 2))) return false;
  const std::size_t skipped = operation.first * ddprun::size_of(call.dtype);
  const void* const from = broadcasts ? call.recv : call.send;
  if (bytes > 0) std::memcpy(segment_.slot(piece_, rank()), at(from, skipped), bytes);
  enter(written(piece_));
  return true;
}

// Reduces this rank's share in the order of the ranks, so that every run gives the same bits.
bool Backend::reduce(const Operation& operation, std::size_t count) {
  if (operation.kind != Kind::allreduce) return true;
  if (!everyone_reached(written(piece_))) return false;
  const auto ranks = static_cast<std::size_t>(size()), own = static_cast<std::size_t>(rank());
  const std::size_t first = count * own / ranks, share = count * (own + 1) / ranks - first;
  with_type(operation.call.dtype, [&]<typename T>(T) {
    T* const result = reinterpret_cast<T*>(segment_.slot(piece_, 0)) + first;
    for (int other = 1; other < size(); ++other) {
      combine(result, reinterpret_cast<const T*>(segment_.slot(piece_, other)) + first, share, operation.call.op);
    }
    if constexpr (std::is_floating_point_v<T>) {
      for (std::size_t i = 0; operation.call.op == ddprun::Op::avg && i < share; ++i) {
        result[i] /= static_cast<T>(size());
      }
    }
  });
  enter(reduced(piece_));
  return true;
}

// Copies the result out of the slots.
bool Backend::read(const Operation& operation, std::size_t bytes) {
  const auto& call = operation.call;
  const std::size_t element = ddprun::size_of(call.dtype), skipped = operation.first * element;
  switch (operation.kind) {
    case Kind::allreduce:
      if (!everyone_reached(reduced(piece_))) return false;
      std::memcpy(at(call.recv, skipped), segment_.slot(piece_, 0), bytes);
      return true;
    case Kind::broadcast:
      if (rank() == call.root) return true;
      if (!reached(written(piece_), call.root, call.root + 1)) return false;
      std::memcpy(at(call.recv, skipped), segment_.slot(piece_, call.root), bytes);
      return true;
    case Kind::allgather:
      if (!everyone_reached(written(piece_))) return false;
      for (int other = 0; other < size(); ++other) {
        std::byte* const to = at(call.recv, static_cast<std::size_t>(other) * call.count * element + skipped);
        if (to != at(call.send, skipped)) std::memcpy(to, segment_.slot(piece_, other), bytes);
      }
      return true;
    default: return everyone_reached(written(piece_));
  }
}

void Backend::enter(int64_t stage) {
  segment_.state(rank()).stage.store(stage);
  segment_.ring();
}

bool Backend::reached(int64_t stage, int from, int to) {
  awaited_ = {stage, from, to};
  for (int other = from; other < to; ++other) {
    if (segment_.state(other).stage.load() < stage) return false;
  }
  return true;
}

bool Backend::test(ddprun::Request& request) {
  if (failure_) throw CommError(*failure_);
  progress();
  const Operation& operation = operation_of(request);
  if (!operation.done && Clock::now() >= next_check_) {
    check(operation.deadline);
    next_check_ = Clock::now() + std::chrono::milliseconds(5);
  }
  return operation.done;
}

ddprun::ExecutionInfo Backend::wait(ddprun::Request& request, std::chrono::milliseconds timeout) {
  const auto operation = std::find_if(operations_.begin(), operations_.end(),
                                      [&](const Operation& candidate) { return &candidate == &request; });
  // However this ends, the request is the backend's again.
  struct Return {
    std::list<Operation>&from, &to;
    std::list<Operation>::iterator operation;
    ~Return() { to.splice(to.begin(), from, operation); }
  } const give_back{operations_, free_, operation};

  const auto start = Clock::now();
  const auto deadline = timeout < operation->deadline - start ? start + timeout : operation->deadline;
  const auto spin_until = start + std::chrono::microseconds(50);
  while (!operation->done) {
    if (failure_) throw CommError(*failure_);
    const uint32_t seen = segment_.rings();
    progress();
    if (operation->done) break;
    if (Clock::now() < spin_until) {
      sched_yield();
      continue;
    }
    check(deadline);
    segment_.sleep(seen);
  }
  return operation->info;
}

void Backend::abort() noexcept {
  aborted_ = true;
  segment_.ring();
}

void Backend::check(Clock::time_point deadline) {
  if (aborted_ || host_.aborted()) fail(CommStatus::aborted, "the communicator was aborted");
  if (const int lost = lost_rank(); lost >= 0) {
    const bool ended = segment_.process_ended(lost);
    fail(CommStatus::peer_lost, "rank " + std::to_string(lost) + (ended ? " has ended" : " has left"));
  }
  if (Clock::now() <= deadline) return;
  int missing = awaited_.from;
  while (missing < awaited_.to - 1 && segment_.state(missing).stage.load() >= awaited_.stage) ++missing;
  fail(CommStatus::timeout, "the deadline passed while waiting for rank " + std::to_string(missing));
}

// A rank that is gone and has not done what is needed of it; -1: none. A rank that has its result may be gone. Ranks
// that were killed come first: others leave because of them.
int Backend::lost_rank() const {
  for (const bool killed : {true, false}) {
    for (int other = 0; other < size(); ++other) {
      const RankState& state = segment_.state(other);
      if (other == rank() || !(killed ? segment_.process_ended(other) : state.left.load() != 0)) continue;
      const bool awaited = other >= awaited_.from && other < awaited_.to;
      if (state.stage.load() < (awaited ? awaited_.stage : finished(piece_ - 1))) return other;
    }
  }
  return -1;
}

void Backend::fail(CommStatus status, const std::string& text) {
  segment_.state(rank()).left.store(1);  // the others must not wait for this rank
  segment_.ring();
  failure_.emplace(status, text);
  throw CommError(*failure_);
}

}  // namespace shm_direct
