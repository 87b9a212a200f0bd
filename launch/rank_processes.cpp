#include "launch/rank_processes.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>

#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "launch/failure.hpp"
#include "launch/net/address.hpp"
#include "launch/rendezvous.hpp"
#include "launch/signals.hpp"

namespace ddprun::launch {
namespace {

std::vector<std::string> environment_of(const Job& job, const JobLink& link, int local, const std::string& folder) {
  const Nodes& nodes = job.nodes;
  std::vector<std::string> added = job.environment;
  const auto add = [&](const std::string& name, const std::string& value) { added.push_back(name + "=" + value); };
  for (const std::string names : {"DDPRUN_", ""}) {
    if (names.empty() && !job.torchrun_variables) continue;
    add(names + "RANK", std::to_string(link.first_rank() + local));
    add(names + "WORLD_SIZE", std::to_string(link.world()));
    add(names + "LOCAL_RANK", std::to_string(local));
    add(names + "LOCAL_WORLD_SIZE", std::to_string(job.nproc));
  }
  if (job.torchrun_variables) {
    add("MASTER_ADDR", nodes.master.host);
    add("MASTER_PORT", std::to_string(link.nodes().front().program_port));
    add("GROUP_RANK", std::to_string(nodes.rank));
    add("GROUP_WORLD_SIZE", std::to_string(nodes.count));
  }
  if (nodes.count > 1) add("DDPRUN_STORE", nodes.master.host + ":" + std::to_string(nodes.master.port));
  if (nodes.master.secret == kKnownSecret) add("DDPRUN_SECRET", to_hex(kKnownSecret));  // others are there already
  add("DDPRUN_JOB_DIR", folder);
  add("DDPRUN_SURVIVES", nodes.survives() ? "1" : "");
  if (const int columns = columns_of(STDERR_FILENO); columns > 0) add("DDPRUN_TTY", std::to_string(columns));
  return environment_with(added);
}

int64_t oom_kills_here() {
  return oom_kills(read_whole("/proc/self/cgroup").value_or(""));
}

}  // namespace

int64_t oom_kills(const std::string& cgroup, const std::string& mount) {
  std::istringstream lines(cgroup);
  for (std::string line; std::getline(lines, line);) {  // "hierarchy:controllers:/path"; version 2 is "0::/path"
    const std::size_t controllers = line.find(':') + 1, path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) continue;
    const std::string names = "," + line.substr(controllers, path - controllers - 1) + ",";
    std::string file;
    if (names == ",,") file = mount + line.substr(path) + "/memory.events";
    if (names.find(",memory,") != names.npos) file = mount + "/memory" + line.substr(path) + "/memory.oom_control";
    std::ifstream counters(file);
    std::string name;
    for (int64_t count = 0; counters >> name >> count;) {
      if (name == "oom_kill") return count;
    }
  }
  return 0;
}

RankProcesses::RankProcesses(const Job& job, JobLink& link, JobOutput& output)
    : job_(job),
      link_(link),
      output_(output),
      first_(link.first_rank()),
      table_(folder_.path(), job.nproc),
      guardian_(folder_.path()),
      oom_before_(oom_kills_here()) {
  try {
    for (int local = 0; local < job.nproc; ++local) ranks_.push_back(start(local, link.comes_back()));
  } catch (...) {
    kill();
    for (const Rank& started : ranks_) wait_for(started);
    throw;
  }
}

RankProcesses::~RankProcesses() {
  kill();
  for (const Rank& rank : ranks_) {
    if (!rank.end) wait_for(rank);
  }
}

std::size_t RankProcesses::live() const {
  const auto is_live = [&](const Rank& rank) { return !rank.end || (rank.survived && may_replace()); };
  return static_cast<std::size_t>(std::ranges::count_if(ranks_, is_live));
}

bool RankProcesses::may_replace() const {
  return replaced_ < job_.max_restarts && stop_signal_ == 0 && !failed_ && !killed_at_ && !leaves_;
}

bool RankProcesses::poll() {
  for (Rank& rank : ranks_) {
    begun_ = begun_ || joining_ > 0 || table_.get(rank.number - first_).step > 0;
    // A process that it has started may still have its output open.
    const bool has_printed_all = !rank.child.out && !rank.child.err;
    const bool is_late = rank.end && Clock::now().time_since_epoch() - rank.end->time > kStoppedLimit;
    if (rank.survived && (has_printed_all || is_late) && may_replace()) {
      ++replaced_;
      rank = start(rank.number - first_, true);
    }
    if (!rank.joining.empty() && folder_store(folder_.path())->get(rank.joining, {})) {
      rank.joining.clear();
      link_.announce(MemberChange{who(rank), true});
    }
    if (!rank.end) poll_rank(rank);
    if (rank.end || !rank.stopped_too_long()) continue;
    if (job_.nodes.survives()) ::kill(-rank.child.pid, SIGKILL);
    failed_ = failed_ || !job_.nodes.survives();
  }
  return failed_ = failed_ || first_failure(folder_.path()).has_value();
}

void RankProcesses::poll_rank(Rank& rank) {
  siginfo_t info{};
  const auto id = static_cast<id_t>(rank.child.pid);
  while (::waitid(P_PID, id, &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 && info.si_pid != 0) {
    rank.stopped.reset();
    if (info.si_code == CLD_STOPPED) {
      rank.stopped = Clock::now();
      output_.print("ddprun: rank " + std::to_string(rank.number) + " (pid " + std::to_string(id) +
                    ") is stopped by a signal; " + (job_.nodes.survives() ? "it is killed in " : "the job ends in ") +
                    std::to_string(kStoppedLimit.count() / 1000) + " s if it is not continued (SIGCONT)");
    }
    info = {};
  }
  if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) reap(rank);
}

void RankProcesses::reap(Rank& rank) {
  rank.end = end_of(rank, wait_for(rank));
  if (stop_signal_ != 0 && rank.end->exit_code == 128 + stop_signal_) rank.end->exit_code = 0;
  if (stop_signal_ != 0 && rank.end->signal == stop_signal_) rank.end->signal = 0;
  const bool has_failed = first_cause({*rank.end}) != nullptr;
  failed_ = failed_ || (has_failed && !survive(rank));
  // One that wants to meet the others goes on alone.
  if (!has_failed && job_.nodes.survives()) link_.announce(MemberChange{*rank.end});
}

// Whether the others may go on without this rank, which has failed.
bool RankProcesses::survive(Rank& rank) {
  const RankEnd& end = *rank.end;
  if (!job_.nodes.survives() || killed_at_) return false;
  if (!rank.joining.empty()) {  // the others do not wait for it
    output_.print("ddprun: " + describe(end));
  } else if (end.signal == 0 || end.signal == SIGABRT || end.failure || !has_begun()) {
    return false;  // SIGABRT: an exception, which may come again on the rank that goes on in its place
  } else {
    link_.announce(MemberChange{end});
  }
  return rank.survived = true;
}

// joins: in the place of a dead one. The others wait for it only when it is ready.
RankProcesses::Rank RankProcesses::start(int local, bool joins) {
  std::vector<std::string> variables = environment_of(job_, link_, local, folder_.path());
  Rank rank{.number = first_ + local, .child = {}, .joining = joins ? "ready/" + std::to_string(++joining_) : ""};
  if (joins) {
    variables.push_back(std::string(kReplaces) + "=" + rank.joining);
    table_.set(local, {});
    oom_before_ = oom_kills_here();
  }
  const auto entrust = [&] { guardian_.entrust(::getpid()); };
  const auto leave = [&] {
    entrust();
    guardian_.close_in_child();
    ranks_.clear();  // closes the pipes of the others
  };
  const bool forks = job_.forked && !joins;
  rank.child = forks ? fork_rank(job_.forked, variables, leave) : spawn(job_.command, variables, entrust);
  return rank;
}

std::vector<Progress> RankProcesses::progress() const {
  std::vector<Progress> all;
  const auto trains = std::ranges::find_if(ranks_, &Rank::trains);
  if (trains == ranks_.end() && std::ranges::any_of(ranks_, &Rank::is_out)) return all;
  for (const Rank& rank : ranks_) all.push_back(table_.get((rank.is_out() ? *trains : rank).number - first_));
  return all;
}

// A dead leader keeps its group's id until it is reaped, so kill the rest of the group now.
int RankProcesses::wait_for(const Rank& rank) const {
  ::kill(-rank.child.pid, SIGKILL);
  guardian_.release(rank.child.pid);
  return wait_for_child(rank.child.pid);
}

RankEnd RankProcesses::who(const Rank& rank) {
  return {.rank = rank.number, .pid = rank.child.pid, .host = host_name(), .time = Clock::now().time_since_epoch()};
}

RankEnd RankProcesses::end_of(const Rank& rank, int status) const {
  RankEnd end = who(rank);
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  end.failure = failure_of(folder_.path(), end.rank);
  if (end.failure && killed_at_ && end.failure->time > killed_at_->time_since_epoch()) end.failure.reset();
  if (end.signal != 0) end.crash = crash_of(folder_.path(), end.rank);
  end.memory_limit = end.signal == SIGKILL && oom_kills_here() > oom_before_;
  end.progress = table_.get(rank.number - first_);
  end.stopped = rank.stopped_too_long();
  end.killed_by_launcher = killed_at_ && !end.failure;
  return end;
}

void RankProcesses::leave() {
  leaves_ = true;
  send(SIGKILL);  // others may have come to the ranks too, and would stop the job
}

void RankProcesses::send(int signal) const {
  for (const Rank& rank : ranks_) {
    if (!rank.end) ::kill(rank.child.pid, signal);
  }
}

void RankProcesses::ask(int value, std::optional<int> only) const {
  for (const Rank& rank : ranks_) {
    const bool is_asked = !rank.end && !job_.torchrun_variables && only.value_or(rank.number) == rank.number;
    if (is_asked) ::sigqueue(rank.child.pid, SIGUSR2, {.sival_int = value});
  }
}

void RankProcesses::kill() {
  if (killed_at_) return;
  killed_at_ = Clock::now();
  for (const Rank& rank : ranks_) {
    if (!rank.end) ::kill(-rank.child.pid, SIGKILL);
  }
}

std::vector<RankEnd> RankProcesses::ends() const {
  std::vector<RankEnd> ends;
  for (const Rank& rank : ranks_) {
    if (!rank.survived) ends.push_back(rank.end.value());
  }
  return ends;
}

}  // namespace ddprun::launch
