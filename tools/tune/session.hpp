// The children of `ddprun tune`: each is `ddprun` with arguments, on this host or on all hosts together.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/store.hpp"
#include "cli/config/experiment.hpp"
#include "ddprun/error.hpp"
#include "tools/compare/process.hpp"
#include "tools/tune/request.hpp"

namespace ddprun::tune {

// For the main thread only, as compare::run_process().
class Session {
 public:
  // With several hosts, meets the others. `ranks`: of this host. `identity`: what must be equal on all hosts
  // (launch/meeting.hpp). Both references must outlive the session. Collective. Throws Error: usage for the node
  // options, rendezvous.
  Session(const Request& request, const config::Experiment& experiment, int64_t ranks, const std::string& identity,
          std::chrono::milliseconds timeout);

  bool leads() const { return nodes_.rank == 0; }
  int hosts() const { return nodes_.count; }
  int64_t ranks() const { return all_ranks_; }  // of all hosts

  // Placeholders in a child's arguments. Each host replaces them by its own values: --config and --set of a short run,
  // and --option for comm.options.
  static constexpr const char* kExperiment = "<experiment>";
  static constexpr const char* kOptions = "<options>";

  // Host 0 only: runs a child to its end on all hosts; its output goes to <folder>/logs/<name>.log. Throws Error with
  // the child's exit code and its last line, or interrupted or terminated.
  void run(const std::string& folder, const std::string& name, const std::vector<std::string>& arguments);
  // Host 0 only, at the end: the other hosts end with this code, and with this message if it is not empty.
  void finish(ExitCode code, const std::string& message) noexcept;

  // The other hosts: takes part in all children until host 0 calls finish(). Returns its code, or throws it as Error if
  // there is a message. Throws Error(peer) if host 0 is lost.
  ExitCode follow();

 private:
  compare::ProcessPlan plan_of(const std::vector<std::string>& arguments, const std::string& log, int port) const;
  void run_part(const std::vector<std::string>& arguments, const std::string& folder, const std::string& name,
                int port);
  bool has_failed();

  const Request& request_;
  const config::Experiment& experiment_;
  launch::Nodes nodes_;
  std::unique_ptr<Store> store_;  // null: one host
  int64_t ranks_;
  int64_t all_ranks_;
  int number_ = 0;  // of the child, from 1
  std::chrono::steady_clock::time_point looked_{};
};

}  // namespace ddprun::tune
