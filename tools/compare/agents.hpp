// The processes of a comparison over several hosts, or under another launcher: one on each node, or one for each rank.
// Process 0 decides what runs, reads the results and reports them. Each process starts its part of a run as a child.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/store.hpp"
#include "cli/console/node_options.hpp"
#include "launch/world.hpp"
#include "tools/compare/other_cpu.hpp"
#include "tools/compare/process.hpp"
#include "tools/compare/request.hpp"
#include "tools/compare/runner.hpp"
#include "tools/compare/variant.hpp"

namespace ddprun::compare {

// One run, as all processes know it.
struct Leg {
  std::string variant;                 // its name
  std::vector<std::string> overrides;  // of its config
  std::string folder;                  // of the comparison
  std::string name;                    // of the log: "003-ring"
  int port = 0;                        // where its ranks meet

  std::vector<std::string> arguments(const std::string& config) const;
  std::string log_path(const std::string& process) const;  // process: "", or ".node1"
};

// For the main thread only, as Runner.
class Agents {
 public:
  // Null if this process is the only one. Throws Error(rendezvous) if its launcher's variables do not fit together.
  // Call it before the first thread.
  static std::unique_ptr<Agents> find(const console::NodeOptions& options);

  // The number of ranks of ddp for config::load(); 0: not known before meet().
  int64_t ranks() const { return world_ ? world_->size : 0; }

  // Meets the others with launch.timeout and launch.insecure of the first variant. The number of ranks, over all hosts,
  // becomes launch.nproc of the variants of ddp. `identity`: what must be equal (launch/meeting.hpp). Collective.
  // Throws Error: usage for the node options, rendezvous.
  void meet(const std::string& identity, std::vector<Variant>& variants);

  bool leads() const { return index_ == 0; }

  // Process 0 calls these for each run, in this order. begin() makes the other processes start their part, and
  // completes the plan of its part. failed() returns whether a part has failed so far. collect() waits until all parts
  // have ended, replaces `end` by the first cause, and adds the CPU time of the other parts to `cpu`, which begins with
  // that of process 0. Each throws Error(peer) if the others cannot be reached.
  void begin(Leg& leg, ProcessPlan& plan);
  bool failed();
  void collect(RunEnd& end, std::vector<CpuUse>& cpu);
  // Process 0 calls it at the end: the other processes end with this code, and with this message if it is not empty.
  void finish(ExitCode code, const std::string& message) noexcept;

  // The other processes call it: takes part in all runs until process 0 calls finish(). Returns its code, or throws it
  // as Error if there is a message. Throws Error(peer) if process 0 is lost.
  ExitCode follow(const Running& running, const std::vector<Variant>& variants);

 private:
  Agents() = default;
  void open_store(const Variant& first, std::chrono::milliseconds timeout);
  void place(ProcessPlan& plan, int port) const;
  void run_part(const Leg& leg, const Running& running, const std::vector<Variant>& variants);
  void hear();
  void announce(const ProcessEnd& end, const std::string& text, const std::string& log, const CpuUse& cpu);
  std::string key(const std::string& what) const { return what + " " + std::to_string(leg_); }
  std::string key(const std::string& what, int index) const { return key(what) + "/" + std::to_string(index); }
  std::string process() const { return world_ ? "rank" : "node"; }

  console::NodeOptions options_;
  std::optional<launch::World> world_;  // none: one process on each node
  int index_ = 0;
  int count_ = 1;
  std::string master_;  // the host where the ranks of a run meet
  std::vector<std::string> hosts_;
  std::unique_ptr<Store> store_;
  int leg_ = 0;    // the number of the run, from 1
  int heard_ = 0;  // the number of the last run that failed
  std::chrono::steady_clock::time_point looked_{};
};

}  // namespace ddprun::compare
