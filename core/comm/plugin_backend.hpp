// The adapter from a plugin's C table to CommBackend: it checks each call once, compares it over the ranks where that
// is asked for, and calls the table. Status codes become CommError with the plugin's own words.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/call.hpp"
#include "comm/declared.hpp"
#include "comm/fingerprint.hpp"
#include "comm/flight_recorder.hpp"
#include "ddprun/comm_backend.hpp"
#include "ddprun/plugin/comm_plugin.h"

namespace ddprun::comm {

class PluginHandle;

struct JoinOptions {
  int rank = 0;
  int size = 1;
  int device = -1;                             // CUDA ordinal, or -1 for host memory
  std::chrono::milliseconds deadline{30'000};  // for joining, and for one collective
  std::string algorithm = "auto";
  bool deterministic = false;                    // the order of summation must not vary from run to run
  std::map<std::string, std::string> options{};  // comm.options, as text
  std::string address{};                         // of this host, for the other hosts; empty: one host, or not known
  // The value of every rank in rank order, out of band; called by the joining thread, during join only. May throw: that
  // exception then leaves join.
  std::function<std::vector<std::string>(std::string_view)> allgather{};
  // (optional) Raise it to end a join that is under way; abort() of the backend raises it too.
  std::shared_ptr<std::atomic<int32_t>> abort_flag{};
  std::string whose{};  // follows the backend's name: " of ranks 2, 3", for a part of a job
};

class PluginBackend final : public CommBackend {
 public:
  PluginBackend(const ddprun_comm_plugin& plugin, const JoinOptions& options);

  // From now on: before each collective, exchanges its fingerprint, which is its CallShape. Where they differ, every
  // rank throws CommError(mismatch) with all of them, and every later call throws CommError. What the exchange itself
  // calls on this backend is not compared.
  void compare_calls(std::unique_ptr<FingerprintExchange> exchange) { exchange_ = std::move(exchange); }

  // The last collectives of this rank, without those of the exchange. It may outlive the backend.
  std::shared_ptr<FlightRecorder> recorder() const { return recorder_; }

  Work allreduce(const Collective& call) override { return start(Kind::allreduce, table_.allreduce, call); }
  Work broadcast(const Collective& call) override { return start(Kind::broadcast, table_.broadcast, call); }
  Work allgather(const Collective& call) override { return start(Kind::allgather, table_.allgather, call); }
  Work barrier() override { return start(Kind::barrier, table_.barrier, {}); }
  Work reduce_scatter(const Collective& call) override {
    return start(Kind::reduce_scatter, table_.reduce_scatter, call);
  }
  Work exchange(const Exchange& call) override {
    return start(Kind::exchange, capabilities().exchange ? table_.exchange : nullptr, call);
  }
  void async_error() override;
  void abort() noexcept override;
  std::shared_ptr<void> allocate(std::size_t bytes) override;
  bool test(Request& request) override;
  ExecutionInfo wait(Request& request, std::chrono::milliseconds timeout) override;

 private:
  // A request of the plugin, and the call that it is of, for messages.
  struct Started : Request {
    CallShape shape;
    ddprun_request* handle = nullptr;
  };
  // By dtype and op: the memory in which it is taken, as a mask.
  using Taken = std::array<std::array<uint32_t, kOpCount>, kDTypeCount>;

  static Taken taken_by(const Capabilities& capabilities);
  template <class Function, class Call = Collective>
  Work start(Kind kind, Function* function, const Call& call);
  Started& take_request();
  void record_end(const CallShape& shape, CallState state) noexcept {
    if (!comparing_) recorder_->end(shape.number, state);
  }
  ddprun_request* call_table(auto* function, const CallShape& shape, const auto& call);
  void check_declared(const CallShape& shape) const;
  void compare(const CallShape& mine);
  // For a failure of no particular collective.
  std::string where(const std::string& doing = "") const {
    return name() + ": rank " + std::to_string(rank()) + ": " + doing;
  }
  [[noreturn]] void fail(const std::string& where, ddprun_status status) const;

  const ddprun_comm_plugin& table_;
  const std::string algorithm_;
  const Taken by_allreduce_;       // the chosen algorithm, or any under auto
  const Taken by_reduce_scatter_;  // any algorithm
  const std::chrono::milliseconds deadline_;
  const std::shared_ptr<PluginHandle> handle_;
  const std::shared_ptr<FlightRecorder> recorder_ = std::make_shared<FlightRecorder>();
  uint64_t calls_ = 0;
  std::vector<std::unique_ptr<Started>> requests_;
  std::vector<Started*> free_;  // of requests_, which are used again and again
  std::unique_ptr<FingerprintExchange> exchange_;
  bool comparing_ = false;
  bool disagreed_ = false;  // or lost one another
};

// Joins all ranks into a communicator of the plugin, whose table outlives it. Blocks, at most options.deadline. Throws
// Error(plugin) where the plugin refuses the options or breaks its contract, Error(rendezvous) where a rank does not
// come or is lost, Error(failure) for the rest.
std::unique_ptr<PluginBackend> join(const ddprun_comm_plugin& plugin, const JoinOptions& options);

// At the end of a rank that has not failed: `finish` of each plugin that has joined ranks here, unless one of its
// communicators is still there.
void finish_plugins();

// The backend of a world of one, where every collective is the identity: the same program trains on one rank. Copies
// send to recv where they differ (host memory only; CUDA memory must be in place). It refuses what every backend
// refuses, so that a program that works on one rank makes only calls that are right on several.
std::unique_ptr<CommBackend> single_process_backend();

}  // namespace ddprun::comm
