#include "launch/supervisor.hpp"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "launch/first_cause.hpp"
#include "launch/job_link.hpp"
#include "launch/job_output.hpp"
#include "launch/members.hpp"
#include "launch/net/address.hpp"
#include "launch/net/hub.hpp"
#include "launch/net/net_store.hpp"
#include "launch/rank_processes.hpp"
#include "launch/rendezvous.hpp"
#include "launch/signals.hpp"

namespace ddprun::launch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The longest time between two checks of the ranks, so that a slow rank is named within a few steps.
constexpr milliseconds kPollInterval{50};
// How long a node waits until the others have reported how their ranks ended: longer than it takes to notice a lost
// node.
constexpr milliseconds kVerdictLimit = Hub::kSilence + milliseconds(1000);

// How one start of the ranks ended.
struct Verdict {
  ExitCode code = ExitCode::ok;
  std::string text;      // the last line of the launcher; "" after a success
  bool stopped = false;  // a signal ended the job

  // Other failures would come again: of the config, a plugin or the rendezvous. A stop is no failure.
  bool may_restart() const { return !stopped && (code == ExitCode::failure || code == ExitCode::peer); }
};

// One start of the ranks of this node.
class Supervisor {
 public:
  Supervisor(Job job, JobLink& link)
      : job_(std::move(job)), link_(link), output_(link.first_rank(), job_.nproc, job_.log_dir) {}

  Verdict run() {
    Verdict verdict;
    bool broken_off = false;
    {
      Signals signals({SIGUSR2});
      // If the launcher itself fails (no descriptor, no memory), the destructor of `ranks` ends them.
      RankProcesses ranks(job_, link_, output_);
      job_.forked = nullptr;  // the launcher must not keep the memory of what the ranks have inherited
      ranks_ = &ranks;
      if (job_.nodes.survives() && job_.nodes.rank == 0) {
        const Nodes& nodes = job_.nodes;
        members_.emplace(link_, nodes.least, nodes.timeout,
                         nodes.count == 1 ? folder_store(ranks.folder()) : net_store(nodes.master, nodes.timeout));
      }
      while (ranks.live() > 0) turn(signals);
      drain();
      if (leaves_) link_.disconnect();
      wait_for_nodes(signals);
      verdict = judge();
      broken_off = verdict.code != ExitCode::ok && (!stop_signal_ || ranks.killed());
    }
    // All ranks have ended and other signals have their old handlers, so a user can interrupt the wait for a slow
    // reader.
    if (broken_off && job_.advice && !(job_.max_restarts > 0 && verdict.may_restart())) {
      if (const std::string advice = job_.advice(); !advice.empty()) output_.print(advice);
    }
    output_.flush();
    if (const std::string lost = output_.lost(); verdict.code == ExitCode::ok && !lost.empty()) {
      verdict = {ExitCode::failure, "ddprun: failed: cannot write the output to " + lost};
    }
    if (!verdict.text.empty()) output_.print(verdict.text);
    output_.flush();
    return verdict;
  }

 private:
  // After the ranks of this node have ended: the first cause may be on another one.
  void wait_for_nodes(Signals& signals) {
    std::optional<Clock::time_point> limit;
    bool has_announced = false;
    while (true) {
      // Where deaths are survived, node 0 knows the first cause only when all have ended.
      if (!has_announced && (!members_ || failing_ || link_.have_ended())) {
        link_.announce_ends(own_ends());
        has_announced = true;
      }
      if (!link_.connected() || link_.have_ended() || (limit && Clock::now() >= *limit)) return;
      turn(signals);
      if ((failing_ || ranks_->killed()) && !limit) {
        limit = (may_still_save() ? *kill_at_ : Clock::now()) + kVerdictLimit;
      }
    }
  }

  // One iteration of the loop: waits for the first event and handles it.
  void turn(Signals& signals) {
    std::vector<pollfd> entries{{signals.fd(), POLLIN, 0}, {link_.fd(), POLLIN, 0}};
    output_.add_to(entries);
    for (int rank = 0; rank < job_.nproc && !output_.full(); ++rank) {  // ranks that print too fast must wait
      for (const UniqueFd* pipe : {&ranks_->child(rank).out, &ranks_->child(rank).err}) {
        if (*pipe) entries.push_back({pipe->get(), POLLIN, 0});
      }
    }
    milliseconds left = kPollInterval;
    if (kill_at_ && !ranks_->killed()) left = std::min(left, std::chrono::ceil<milliseconds>(*kill_at_ - Clock::now()));
    ::poll(entries.data(), entries.size(), static_cast<int>(std::max(left.count(), milliseconds::rep{0})));

    link_.turn();
    if (link_.failing()) begin_to_fail();
    if (const auto signal = link_.stop_signal(); signal && !is_asked() && signal != stop_signal_) stop(*signal);
    for (int rank = 0; rank < job_.nproc && !output_.full(); ++rank) output_.read(rank, ranks_->child(rank));
    while (const auto signal = signals.next()) {
      if (*signal == SIGUSR2) ranks_->send(SIGUSR2);
      if (*signal != SIGCHLD && *signal != SIGUSR2) on_stop_signal(*signal);
    }
    if (ranks_->poll()) begin_to_fail();
    if (job_.nodes.survives()) change_members();
    watch_progress();
    if (kill_at_ && Clock::now() >= *kill_at_) ranks_->kill();
    output_.write_some();
  }

  // In a job that survives deaths.
  void change_members() {
    for (const MemberChange& change : link_.take_changes()) {
      const std::string line = members_->apply(change, ranks_->has_begun());
      if (!line.empty()) link_.announce_news(line);
    }
    if (members_ && members_->fatal() && !stop_signal_) {
      members_->gives_up() ? stop(0) : begin_to_fail();  // ranks that wait have a state to save
    }
    for (const std::string& line : link_.take_news()) output_.print("ddprun: " + line);
  }

  // After all ranks have ended: their remaining output is in the pipes. A process that left its rank's group may still
  // hold a pipe open and write to it; it is not waited for.
  void drain() {
    constexpr int kReads = 32;  // more than the largest pipe holds
    for (int rank = 0; rank < job_.nproc; ++rank) {
      for (int read = 0; read < kReads && output_.read(rank, ranks_->child(rank)); ++read) {
      }
      output_.finish(rank);
    }
  }

  // The ranks of a program that is stopped do not end in the same step: one may save when others have lost a peer.
  bool may_still_save() const { return job_.torchrun_variables && stop_signal_ && !ranks_->killed(); }

  void begin_to_fail() {
    if (failing_ || ranks_->killed()) return;
    failing_ = true;
    if (!may_still_save()) {
      kill_at_ = Clock::now() + kCollect;
      in_grace_ = false;
    }
    ranks_->ask(kJobFails);
    link_.announce_failing();
  }

  void on_stop_signal(int signal) {
    if (is_asked()) {
      if (signal == SIGUSR1) return;
      in_grace_ = in_grace_ && ranks_->killed();
      return ranks_->kill();
    }
    if (signal != SIGINT && may_leave()) return leave();
    stop(signal == SIGINT ? SIGINT : SIGTERM);
  }

  bool is_asked() const { return stop_signal_.value_or(0) != 0; }  // by a user or a cluster, to stop

  // This node, or another one, has got the signal; 0: too few nodes are left.
  void stop(int signal) {
    const bool is_first = !stop_signal_;
    stop_signal_ = signal;
    link_.announce_stop(signal);
    if (members_) members_->stop_waiting();
    const int sent = signal == 0 ? SIGTERM : signal;
    if (is_first) ranks_->expect_stop_by(sent);
    if (failing_) return;
    // Before the first step no rank has a result yet that should be saved.
    if (!job_.torchrun_variables && !ranks_->has_begun()) return ranks_->kill();
    kill_at_ = Clock::now() + job_.grace;
    in_grace_ = true;
    if (job_.torchrun_variables) {
      if (is_first) ranks_->send(sent);
      output_.print(std::string("ddprun: stopping: the ranks get SIG") + ::sigabbrev_np(sent) + ", and have " +
                    grace_text() + " to end (a second signal ends them at once)");
      return;
    }
    ranks_->table().request_stop();
    output_.print("ddprun: stopping: the ranks finish a common step and save (a second signal ends them at once)");
  }

  // Whether the job goes on without this node.
  bool may_leave() const {
    const Nodes& nodes = job_.nodes;
    return nodes.survives() && nodes.rank > 0 && ranks_->has_begun() && !failing_ && link_.nodes_left() > nodes.least;
  }

  void leave() {
    leaves_ = true;
    stop_signal_ = SIGTERM;
    kill_at_ = Clock::now() + job_.grace;
    ranks_->leave();
    link_.announce_news(host_name() + " leaves the job, which goes on without its ranks");
  }

  // Names the ranks for which the others wait.
  void watch_progress() {
    if (ranks_->killed() || (members_ && members_->waits())) return;
    for (const std::string& line : link_.watch(ranks_->progress(), kPollInterval)) output_.print("ddprun: " + line);
    for (const int rank : link_.take_stuck()) ranks_->ask(kShowStack, rank);
  }

  std::vector<RankEnd> own_ends() {
    std::vector<RankEnd> ends = ranks_->ends();
    // A rank that was slow to finish may have succeeded all the same.
    for (RankEnd& end : ends) end.hung = end.killed_by_launcher && link_.hangs(end.rank, end.progress);
    if (members_ && members_->fatal()) ends.push_back(*members_->fatal());
    return ends;
  }

  Verdict judge() {
    std::vector<RankEnd> ends = own_ends();
    for (const RankEnd& end : link_.ends()) ends.push_back(end);
    const RankEnd* cause = first_cause(ends);
    Verdict verdict;
    if (cause != nullptr) {
      verdict = {exit_code_of(*cause, job_.torchrun_variables),
                 "ddprun: failed: " + describe(*cause) + elsewhere(*cause, ends)};
    }
    // A signal to a rank, and not to this process, stops the job too.
    if (!stop_signal_ && cause == nullptr && ranks_->table().stop_requested()) stop_signal_ = SIGTERM;
    if (leaves_) return {ExitCode::terminated, "ddprun: terminated; this host has left the job", true};
    verdict.stopped = is_asked();
    if (!verdict.stopped) return verdict;
    verdict.code = stop_signal_ == SIGINT ? ExitCode::interrupted : ExitCode::terminated;
    const bool lost_one_that_stopped = job_.torchrun_variables && cause != nullptr && is_consequence(*cause);
    if (cause == nullptr || lost_one_that_stopped) verdict.text = stop_text();
    return verdict;
  }

  std::string stop_text() const {
    const std::string what = stop_signal_ == SIGINT ? "ddprun: interrupted" : "ddprun: terminated";
    if (!ranks_->killed()) return what + "; all ranks stopped";
    if (!in_grace_) return what + "; the ranks were killed";
    return what + "; the ranks were killed, as some had not ended after " + grace_text() +
           (job_.torchrun_variables ? " (--grace)" : " (launch.grace)");
  }

  std::string grace_text() const { return exact_text(std::chrono::duration<double>(job_.grace).count()) + " s"; }

  Job job_;
  JobLink& link_;
  JobOutput output_;
  RankProcesses* ranks_ = nullptr;
  std::optional<Members> members_;  // on node 0, in a job that survives deaths
  bool failing_ = false;
  bool leaves_ = false;
  std::optional<int> stop_signal_;            // as stop()
  std::optional<Clock::time_point> kill_at_;  // the end of the grace period, or of kCollect
  bool in_grace_ = false;                     // only the end of the grace period kills the ranks
};

std::unique_ptr<JobLink> join_nodes(const Job& job) {
  const Nodes& nodes = job.nodes;
  NodeInfo info{host_name(), job.nproc};
  if (job.torchrun_variables && nodes.rank == 0) info.program_port = free_port(nodes.master.host);
  if (nodes.count == 1) return std::make_unique<JobLink>(std::move(info));
  return std::make_unique<JobLink>(nodes.master, nodes.rank, nodes.count, info, nodes.timeout, nodes.survives());
}

}  // namespace

ExitCode supervise(Job job) {
  if (job.nproc < 1) throw Error(ExitCode::usage, "launch.nproc must be at least 1");
  ::signal(SIGPIPE, SIG_IGN);  // for good: the last lines are written after Signals has ended
  std::unique_ptr<StoreServer> server;
  if (job.nodes.count > 1 && job.nodes.rank == 0) server = store_server(job.nodes.master, job.nodes.survives());
  for (int restart = 0;; ++restart) {
    const auto link = join_nodes(job);
    restart = std::max(restart, link->starts());  // this launcher may have come later, for a node that was lost
    Verdict verdict;
    try {
      Job attempt = job;
      job.forked = nullptr;  // later starts run the command
      attempt.max_restarts -= restart;
      if (restart > 0 && job.before_restart) job.before_restart(attempt, restart);
      verdict = Supervisor(std::move(attempt), *link).run();
    } catch (...) {
      link->fail(current_error());
      throw;
    }
    if (restart >= job.max_restarts || !verdict.may_restart()) return verdict.code;
    std::fprintf(stderr, "ddprun: restart %d of %d\n", restart + 1, job.max_restarts);
  }
}

}  // namespace ddprun::launch
