// The collectives. None blocks: each returns a request at once, test() does what can be done now, and wait() does it
// until the end.
//
// Collectives are cut into pieces that fit into a slot; all ranks number the pieces alike, from 0. For each piece a
// rank goes through stages, which the others see in its state. An allreduce is "direct": a rank
//   1. copies its data into its slot                                          -> written(piece)
//   2. reduces its share of the piece from the slots of all ranks into slot 0 -> reduced(piece)
//   3. copies the whole result out of slot 0                                  -> finished(piece)
// so data are copied in once and out once. In step 2 no other rank touches that share, so slot 0 can take the result.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>

#include "ddprun/plugin/comm_plugin.hpp"
#include "segment.hpp"

namespace shm_direct {

class Backend final : public ddprun::CommBackend {
 public:
  explicit Backend(const ddprun::Host& host);
  ~Backend() override;

  ddprun::Work allreduce(const ddprun::Collective& call) override { return start(Kind::allreduce, call); }
  ddprun::Work broadcast(const ddprun::Collective& call) override { return start(Kind::broadcast, call); }
  ddprun::Work allgather(const ddprun::Collective& call) override { return start(Kind::allgather, call); }
  ddprun::Work barrier() override { return start(Kind::barrier, {}); }
  void abort() noexcept override;

  bool test(ddprun::Request& request) override;
  ddprun::ExecutionInfo wait(ddprun::Request& request, std::chrono::milliseconds timeout) override;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Kind { allreduce, broadcast, allgather, barrier };
  enum class Step { write, reduce, read };

  // A collective that was called. `call` is a copy: the caller's is gone when the call returns.
  struct Operation : ddprun::Request {
    Kind kind = Kind::barrier;
    ddprun::Collective call;
    Clock::time_point deadline;
    std::size_t first = 0;  // element of the piece that is carried out now
    Step step = Step::write;
    bool done = false;
  };
  // What the first unfinished operation waits for: these ranks must reach this stage.
  struct Awaited {
    int64_t stage = 0;
    int from = 0, to = 0;
  };

  static constexpr int64_t written(int64_t piece) { return 3 * piece + 1; }
  static constexpr int64_t reduced(int64_t piece) { return 3 * piece + 2; }
  static constexpr int64_t finished(int64_t piece) { return 3 * piece + 3; }

  ddprun::Work start(Kind kind, const ddprun::Collective& call);
  Operation& operation_of(ddprun::Request& request) { return static_cast<Operation&>(request); }
  // Does all that needs no waiting, for all operations in the order of their calls.
  void progress();
  bool carry_out(Operation& operation);
  void enter(int64_t stage);
  bool reached(int64_t stage, int from, int to);
  bool everyone_reached(int64_t stage) { return reached(stage, 0, size()); }

  bool write(const Operation& operation, std::size_t bytes);
  bool reduce(const Operation& operation, std::size_t count);
  bool read(const Operation& operation, std::size_t bytes);

  // Throws why there is nothing more to wait for: an abort, a lost rank, the deadline.
  void check(Clock::time_point deadline);
  int lost_rank() const;
  [[noreturn]] void fail(ddprun::CommStatus status, const std::string& text);

  const ddprun::Host host_;
  const std::size_t slot_bytes_;
  Segment segment_;
  int64_t piece_ = 0;
  Awaited awaited_;
  std::list<Operation> operations_, free_;  // in the order of their calls; to be used again
  Clock::time_point next_check_;
  std::optional<ddprun::CommError> failure_;  // nothing works after it
  std::atomic<bool> aborted_{false};
};

}  // namespace shm_direct
