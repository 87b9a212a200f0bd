// The processes of a job's ranks: starts them, ends them, and collects how they ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/child.hpp"
#include "launch/first_cause.hpp"
#include "launch/job_folder.hpp"
#include "launch/job_link.hpp"
#include "launch/job_output.hpp"
#include "launch/progress.hpp"
#include "launch/supervisor.hpp"

namespace ddprun::launch {

// How often the kernel has killed a process of this process's cgroup, of version 2 or 1, at a memory limit; 0 if it
// does not say. cgroup: the text of /proc/self/cgroup. mount: where cgroups are.
int64_t oom_kills(const std::string& cgroup, const std::string& mount = "/sys/fs/cgroup");

// Single-threaded: the thread that starts the processes.
class RankProcesses {
 public:
  using Clock = std::chrono::steady_clock;

  // Starts the job's processes on this node, with a new job folder, progress table and guardian. If one cannot be
  // started, ends the others and throws Error(failure). `job` and `link` must outlive it.
  RankProcesses(const Job& job, JobLink& link, JobOutput& output);
  // Kills the processes that still run.
  ~RankProcesses();

  const std::string& folder() const { return folder_.path(); }  // the job folder
  std::size_t live() const;                                     // with those that are to be started again
  // The first step of any rank: from then on, ranks have results that should be saved.
  bool has_begun() const { return begun_; }
  ProgressTable& table() { return table_; }
  // A process by its local rank, with the pipes of its output.
  Child& child(int local) { return ranks_[static_cast<std::size_t>(local)].child; }

  // Updates the state of the ranks: exits, stops, reports. Replaces those that are survived. Returns whether any rank
  // has failed so far, or was under SIGSTOP for too long.
  bool poll();

  // The progress of each process. For one that does not train: that of another, so that nobody seems to wait for it.
  // Empty if none trains any more.
  std::vector<Progress> progress() const;

  // In a job that survives deaths: ends the ranks, and starts none again.
  void leave();
  // The ranks were asked to stop: an exit with this signal's exit code, or by this signal, is then no failure.
  void expect_stop_by(int signal) { stop_signal_ = signal; }
  // Sends this signal to all running ranks.
  void send(int signal) const;
  // Sends SIGUSR2 with this value (launch/signals.hpp) to all running ranks, or to `only` one. Not to a user's program:
  // the signal might end it.
  void ask(int value, std::optional<int> only = std::nullopt) const;
  // Kills all running ranks with their process groups. Later reports are ignored.
  void kill();
  bool killed() const { return killed_at_.has_value(); }

  // How the ranks ended, but for those that were survived. Call it when none runs.
  std::vector<RankEnd> ends() const;

 private:
  static constexpr std::chrono::milliseconds kStoppedLimit{2000};  // for a rank under SIGSTOP

  struct Rank {
    int number;
    Child child;
    std::optional<Clock::time_point> stopped = {};
    std::optional<RankEnd> end = {};
    bool survived = false;     // it has died, and the others go on
    std::string joining = {};  // the value of kReplaces, until it is ready to train

    bool trains() const { return !end && joining.empty(); }
    bool is_out() const { return survived || !joining.empty(); }
    bool stopped_too_long() const { return stopped && Clock::now() - *stopped >= kStoppedLimit; }
  };

  bool may_replace() const;
  void poll_rank(Rank& rank);
  void reap(Rank& rank);
  bool survive(Rank& rank);
  Rank start(int local, bool joins);
  int wait_for(const Rank& rank) const;
  static RankEnd who(const Rank& rank);
  RankEnd end_of(const Rank& rank, int status) const;

  const Job& job_;
  JobLink& link_;
  JobOutput& output_;
  const int first_;
  const JobFolder folder_;
  ProgressTable table_;
  Guardian guardian_;
  std::vector<Rank> ranks_;
  int64_t oom_before_;
  int replaced_ = 0, joining_ = 0;  // how many ranks so far
  bool begun_ = false, leaves_ = false;
  bool failed_ = false;
  int stop_signal_ = 0;
  std::optional<Clock::time_point> killed_at_;
};

}  // namespace ddprun::launch
