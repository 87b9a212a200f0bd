// The processes of a tool that runs on several hosts, or under another launcher: one on each node, or one for each
// rank. Process 0 decides what runs, reads the results and reports them. Each process starts its part of a run as a
// child.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/store.hpp"
#include "cli/console/node_options.hpp"
#include "launch/net/net_store.hpp"
#include "launch/world.hpp"
#include "tools/lib/process.hpp"

namespace ddprun::tools {

// For the main thread only, as run_process().
class Job {
 public:
  // Null if this process is the only one. Throws Error(rendezvous) if its launcher's variables do not fit together.
  // Call it before the first thread.
  static std::unique_ptr<Job> find(const console::NodeOptions& options);

  // The number of ranks of ddp for config::load(); 0: not known before meet().
  int64_t ranks() const { return world_ ? world_->size : 0; }

  struct Terms {
    bool insecure = false;
    std::chrono::milliseconds timeout;
    std::string identity;         // what must be equal (launch/rendezvous.hpp)
    std::string differ, advice;   // IdentityWords
    std::vector<int64_t> counts;  // of ranks that each node starts; under another launcher each process starts one
  };
  // Meets the others. Returns the counts of all processes. Collective. Throws Error: usage for the node options,
  // rendezvous.
  std::vector<std::vector<int64_t>> meet(Terms terms);

  bool leads() const { return index_ == 0; }
  int index() const { return index_; }
  int count() const { return count_; }
  // After meet(): the store; the address of this host by which the others reach it, "" if it is not known, or if there
  // is one host.
  Store& store() { return *store_; }
  const std::string& address() const { return address_; }

  // Process 0: runs its part to its end, and those of the other processes, with the plans that their follow() makes of
  // `what`. All end when one has failed; the end is then that of the first cause. plan.log is FOLDER/logs/NAME.log;
  // the other processes make FOLDER/runs/ and write FOLDER/logs/NAME.node1.log. Throws Error(peer) if the others cannot
  // be reached.
  ChildEnd run(nlohmann::json what, ProcessPlan plan);

  // Process 0: runs `work`; then the other processes end with its code or its error.
  ExitCode lead(const std::function<ExitCode()>& work);
  // The other processes: take part in all runs until process 0 has ended; a plan needs no log. Returns its code, or
  // throws its error. Throws Error(peer) if process 0 is lost.
  ExitCode follow(const std::function<ProcessPlan(const nlohmann::json& what)>& plan_of);

 private:
  Job() = default;
  void open_store(bool insecure, std::chrono::milliseconds timeout);
  void place(ProcessPlan& plan, int port) const;
  void run_part(ProcessPlan plan, const nlohmann::json& what);
  bool failed();
  void acknowledge();
  void announce(const ChildEnd& end);
  void collect(ChildEnd& end);
  void finish(ExitCode code, const std::string& message) noexcept;
  std::string key(const std::string& what) const { return what + " " + std::to_string(run_); }
  std::string key(const std::string& what, int index) const { return key(what) + "/" + std::to_string(index); }
  std::string process() const { return world_ ? "rank" : "node"; }

  console::NodeOptions options_;
  std::optional<launch::World> world_;  // none: one process on each node
  int index_ = 0;
  int count_ = 1;
  launch::StoreAddress at_;  // with the host where the ranks of a run meet
  std::string address_;
  std::vector<std::string> hosts_;
  std::unique_ptr<Store> store_;
  int run_ = 0;           // the number of the run, from 1
  int acknowledged_ = 0;  // the number of the last run that failed
  std::chrono::steady_clock::time_point asked_{};
};

}  // namespace ddprun::tools
