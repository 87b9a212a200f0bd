#include "launch/supervisor.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "launch/child.hpp"
#include "launch/files.hpp"
#include "launch/first_cause.hpp"
#include "launch/folder_watch.hpp"
#include "launch/guardian.hpp"
#include "launch/job_folder.hpp"
#include "launch/job_output.hpp"
#include "launch/oom_kills.hpp"
#include "launch/progress.hpp"
#include "launch/signals.hpp"

namespace ddprun::launch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// From the first failure to the end of the others: their own failures, which are mostly echoes, arrive meanwhile, and
// one of them may turn out to be the first cause.
constexpr milliseconds kCollect{100};
constexpr milliseconds kStoppedLimit{2000};  // a rank under SIGSTOP
constexpr milliseconds kTick{50};            // between looks at the folder where there is no inotify

struct Rank {
  Child child;
  std::optional<Clock::time_point> stopped;
  std::optional<RankEnd> end;
};

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown host";
}

std::string this_oom_file() {
  // /proc files have no size to read by, and are not ours: a plain open of the first lines is enough.
  std::string text;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/cgroup", "re"), &std::fclose);
  std::array<char, 4096> chunk{};
  while (file && std::fgets(chunk.data(), chunk.size(), file.get()) != nullptr) text += chunk.data();
  return oom_file(text);
}

// The columns of the terminal that stderr is, if it is one.
std::optional<int> terminal_columns() {
  winsize size{};
  if (::isatty(STDERR_FILENO) != 1) return std::nullopt;
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

class Supervisor {
 public:
  explicit Supervisor(const Job& job)
      : job_(job), output_(job.nproc, job.log_dir), oom_file_(this_oom_file()), oom_before_(oom_kills(oom_file_)) {}

  ExitCode run() {
    Verdict verdict;
    {
      Signals signals;
      remove_stale_job_folders(job_folder_base());
      JobFolder folder;
      folder_ = folder.path();
      board_ = ProgressBoard::create(folder_, job_.nproc);
      Guardian guardian(folder_);
      guardian_ = &guardian;
      FolderWatch reports(folder_);
      start_ranks();
      try {
        while (live() > 0) turn(signals, reports);
        drain();
        verdict = judge();
      } catch (...) {
        // A fault of our own (no descriptor, no memory) leaves nobody behind either.
        kill_ranks();
        for (Rank& rank : ranks_) {
          if (!rank.end) reap(rank, 0);
        }
        throw;
      }
    }
    // Nothing of the job is left, and signals are as before: a reader that takes its time can be interrupted.
    if (!verdict.text.empty()) output_.say(verdict.text);
    output_.flush();
    return verdict.code;
  }

 private:
  struct Verdict {
    ExitCode code = ExitCode::ok;
    std::string text;
  };

  void start_ranks() {
    ranks_.resize(static_cast<std::size_t>(job_.nproc));
    for (int rank = 0; rank < job_.nproc; ++rank) {
      try {
        ranks_[static_cast<std::size_t>(rank)].child = spawn(job_.command, environment_of(rank));
      } catch (...) {
        ranks_.resize(static_cast<std::size_t>(rank));
        kill_ranks();
        for (Rank& started : ranks_) reap(started, 0);
        throw;
      }
      guardian_->entrust(ranks_[static_cast<std::size_t>(rank)].child.pid);
    }
  }

  std::vector<std::string> environment_of(int rank) const {
    const std::string number = std::to_string(rank);
    const std::string size = std::to_string(job_.nproc);
    std::vector<std::string> added = {
        "DDPRUN_RANK=" + number,       "DDPRUN_WORLD_SIZE=" + size,
        "DDPRUN_LOCAL_RANK=" + number, "DDPRUN_LOCAL_WORLD_SIZE=" + size,
        "DDPRUN_JOB_DIR=" + folder_,   "DDPRUN_LAUNCHER_PID=" + std::to_string(::getpid())};
    if (const auto columns = terminal_columns()) added.push_back("DDPRUN_TTY=" + std::to_string(*columns));
    return environment_with(added);
  }

  // One turn of the loop: waits for whatever comes first, and handles it.
  void turn(Signals& signals, FolderWatch& reports) {
    std::vector<pollfd> entries{{signals.fd(), POLLIN, 0}, {reports.fd(), POLLIN, 0}};
    for (const Screen* screen : output_.screens()) {
      if (screen->pending()) entries.push_back({screen->fd(), POLLOUT, 0});
    }
    for (std::size_t rank = 0; rank < readable_ranks(); ++rank) {
      for (const UniqueFd* pipe : {&ranks_[rank].child.out, &ranks_[rank].child.err}) {
        if (*pipe) entries.push_back({pipe->get(), POLLIN, 0});
      }
    }
    ::poll(entries.data(), entries.size(), poll_timeout(reports));

    read_pipes();
    reports.drain();
    while (const auto signal = signals.next()) {
      if (*signal != SIGCHLD) on_stop_signal(*signal);
    }
    look_at_ranks();
    on_time(Clock::now());
    for (Screen* screen : output_.screens()) {
      screen->write_some();
      warn_if_broken(*screen);
    }
  }

  int poll_timeout(const FolderWatch& reports) const {
    std::optional<Clock::time_point> next;
    const auto consider = [&](std::optional<Clock::time_point> time) {
      if (time && (!next || *time < *next)) next = time;
    };
    if (!killed_at_) {
      consider(kill_at_);
      for (const Rank& rank : ranks_) {
        if (rank.stopped && !rank.end) consider(*rank.stopped + kStoppedLimit);
      }
    }
    for (const Screen* screen : output_.screens()) consider(screen->due());
    if (reports.fd() < 0) consider(Clock::now() + kTick);
    if (!next) return -1;
    const auto left = std::chrono::ceil<milliseconds>(*next - Clock::now()).count();
    return static_cast<int>(std::max<long>(left, 0));
  }

  // The first so many ranks may be read now: all, rank 0 alone, or none. Who prints faster than the reader takes has to
  // wait.
  std::size_t readable_ranks() const {
    if (output_.full()) return 0;
    return output_.crowded() ? 1 : ranks_.size();
  }

  void read_pipes() {
    for (std::size_t rank = 0; rank < readable_ranks(); ++rank) {
      read_pipe(static_cast<int>(rank), Stream::out, ranks_[rank].child.out);
      read_pipe(static_cast<int>(rank), Stream::err, ranks_[rank].child.err);
    }
  }

  // Reads what is there, but no more than one buffer: all ranks get their turn. True when there may be more.
  bool read_pipe(int rank, Stream stream, UniqueFd& pipe) {
    if (!pipe) return false;
    std::array<char, 65536> buffer;
    const ssize_t got = ::read(pipe.get(), buffer.data(), buffer.size());
    if (got > 0) output_.feed(rank, stream, {buffer.data(), static_cast<std::size_t>(got)});
    if (got == 0) {
      output_.finish(rank, stream);
      pipe.reset();
    }
    return got > 0;
  }

  // After the end of all ranks: what they wrote is in the pipes. A process that left its rank's group may still hold
  // one open, and write to it; it is not waited for.
  void drain() {
    constexpr int kReads = 32;  // more than the largest pipe holds
    for (int rank = 0; rank < job_.nproc; ++rank) {
      Child& child = ranks_[static_cast<std::size_t>(rank)].child;
      for (int read = 0; read < kReads && read_pipe(rank, Stream::out, child.out);) ++read;
      for (int read = 0; read < kReads && read_pipe(rank, Stream::err, child.err);) ++read;
      output_.finish(rank, Stream::out);
      output_.finish(rank, Stream::err);
    }
  }

  void look_at_ranks() {
    for (Rank& rank : ranks_) {
      if (!rank.end) look_at(rank);
    }
    if (!failing_ && first_failure_reported()) begin_to_fail();
  }

  void look_at(Rank& rank) {
    siginfo_t info{};
    const auto id = static_cast<id_t>(rank.child.pid);
    while (::waitid(P_PID, id, &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 && info.si_pid != 0) {
      rank.stopped.reset();
      if (info.si_code == CLD_STOPPED) rank.stopped = Clock::now();
      info = {};
    }
    if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) reap(rank, WNOHANG);
  }

  // The dead leader keeps its group's number until it is reaped, so this is the moment to end what is left of the
  // group.
  void reap(Rank& rank, int options) {
    ::kill(-rank.child.pid, SIGKILL);
    guardian_->release(rank.child.pid);
    int status = 0;
    while (::waitpid(rank.child.pid, &status, options) < 0 && errno == EINTR) {
    }
    const int number = static_cast<int>(&rank - ranks_.data());
    RankEnd end;
    end.rank = number;
    end.pid = rank.child.pid;
    end.time = Clock::now().time_since_epoch();
    end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    end.failure = reported(number);
    end.progress = board_->get(number);
    end.stopped = rank.stopped && Clock::now() - *rank.stopped >= kStoppedLimit;
    if (killed_at_ && !end.failure) end.killed_by_launcher = true;
    rank.end = end;
    const bool asked_to_stop = stop_signal_ != 0 && end.exit_code == 128 + stop_signal_;
    if (asked_to_stop) rank.end->exit_code = 0;
    if (first_cause({*rank.end}) != nullptr) begin_to_fail();
  }

  // What a rank reports after the launcher has decided to end all is no cause.
  std::optional<Failure> reported(int rank) const {
    auto failure = failure_of(folder_, rank);
    if (failure && killed_at_ && failure->time > killed_at_->time_since_epoch()) failure.reset();
    return failure;
  }

  bool first_failure_reported() const { return first_failure(folder_).has_value(); }

  void begin_to_fail() {
    if (failing_ || killed_at_) return;
    failing_ = true;
    kill_at_ = Clock::now() + kCollect;
  }

  void on_stop_signal(int signal) {
    if (stop_signal_ != 0) {
      kill_ranks();
      return;
    }
    stop_signal_ = signal;
    if (failing_) return;
    bool begun = false;
    for (int rank = 0; rank < job_.nproc; ++rank) begun = begun || board_->get(rank).step > 0;
    if (!begun) {
      kill_ranks();  // nothing has been learnt that could be kept
      return;
    }
    output_.say("ddprun: stopping after step " + std::to_string(board_->request_stop()) + " (again to end at once)");
    kill_at_ = Clock::now() + job_.grace;
  }

  void on_time(Clock::time_point now) {
    for (Screen* screen : output_.screens()) screen->release_due(now);
    for (const Rank& rank : ranks_) {
      if (!rank.end && rank.stopped && now >= *rank.stopped + kStoppedLimit) {
        failing_ = true;
        kill_ranks();
      }
    }
    if (kill_at_ && now >= *kill_at_) kill_ranks();
  }

  void kill_ranks() {
    if (killed_at_) return;
    killed_at_ = Clock::now();
    for (const Rank& rank : ranks_) {
      if (!rank.end) ::kill(-rank.child.pid, SIGKILL);
    }
  }

  Verdict judge() {
    std::vector<RankEnd> ends;
    const bool memory_limit = oom_kills(oom_file_) > oom_before_;
    for (const Rank& rank : ranks_) {
      ends.push_back(*rank.end);
      ends.back().memory_limit = memory_limit;
    }
    const RankEnd* cause = first_cause(ends);
    Verdict verdict;
    if (cause != nullptr) verdict = {exit_code_of(*cause), "ddprun: failed: " + describe(*cause, host_name())};
    if (stop_signal_ == 0) return verdict;
    verdict.code = stop_signal_ == SIGINT ? ExitCode::interrupted : ExitCode::terminated;
    if (cause == nullptr) verdict.text = stop_text();
    return verdict;
  }

  std::string stop_text() const {
    const std::string what = stop_signal_ == SIGINT ? "ddprun: interrupted" : "ddprun: terminated";
    return what + (killed_at_ ? "; the ranks were killed" : "; all ranks stopped");
  }

  void warn_if_broken(const Screen& screen) {
    if (screen.broken() == 0 || warned_) return;
    warned_ = true;
    output_.say(std::string("ddprun: warning: the output of the ranks is dropped from here on: ") +
                std::strerror(screen.broken()));
  }

  std::size_t live() const {
    return static_cast<std::size_t>(
        std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.end; }));
  }

  const Job& job_;
  JobOutput output_;
  const std::string oom_file_;
  const std::optional<int64_t> oom_before_;
  std::string folder_;
  std::unique_ptr<ProgressBoard> board_;
  Guardian* guardian_ = nullptr;
  std::vector<Rank> ranks_;
  bool failing_ = false;
  bool warned_ = false;
  int stop_signal_ = 0;
  std::optional<Clock::time_point> kill_at_;    // when patience ends
  std::optional<Clock::time_point> killed_at_;  // when it ended
};

}  // namespace

ExitCode supervise(const Job& job) {
  if (job.nproc < 1) throw Error(ExitCode::usage, "launch.nproc must be at least 1");
  return Supervisor(job).run();
}

}  // namespace ddprun::launch
