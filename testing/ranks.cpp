#include "testing/ranks.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "base/file.hpp"
#include "ddprun/error.hpp"

namespace ddprun::testing {

const char* name_of(As as) {
  return as == As::processes ? "processes" : "threads";
}

std::string Outcome::describe() const {
  const std::string who = "rank " + std::to_string(rank) + ": ";
  switch (end) {
    case End::finished: return who + "finished";
    case End::threw: return who + "threw: " + error;
    case End::exited: return who + "exited with status " + std::to_string(number);
    case End::killed: return who + "killed by signal " + std::to_string(number) + " (" + strsignal(number) + ")";
    case End::hung: return who + "did not end before its deadline and was killed";
  }
  return who;
}

void Outcome::take(char kind, std::string text) {
  if (kind == 'R') records.push_back(std::move(text));
  if (kind == 'F') end = End::finished;
  if (kind != 'E') return;
  end = End::threw;
  number = std::stoi(text);
  error = text.substr(text.find(' ') + 1);
}

void Rank::run(const std::function<void(Rank&)>& body) {
  try {
    body(*this);
    send_('F', "");
  } catch (const Error& error) {
    send_('E', std::to_string(static_cast<int>(error.code())) + " " + error.what());
  } catch (const std::exception& error) {
    send_('E', std::string("-1 ") + error.what());
  } catch (...) {
    send_('E', "-1 an exception of unknown type");
  }
}

namespace {

sigset_t stops() {
  sigset_t signals{};
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

}  // namespace

void block_stops() {
  const sigset_t signals = stops();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

// The parent's side of run_ranks().
class World {
 public:
  World(int size, As as, std::chrono::milliseconds deadline, Placement placement)
      : size_(size),
        as_(as),
        deadline_(placement.fork ? Clock::now() + deadline : Clock::time_point::max()),
        placement_(std::move(placement)),
        exchange_(size),
        outcomes_(size),
        streams_(size) {}

  std::vector<Outcome> run(const std::function<void(Rank&)>& body) {
    start(body);
    listen();
    for (auto& thread : threads_) thread.join();
    for (auto& child : children_) reap(child);
    for (int rank = 0; rank < size_ && placement_.fork; ++rank) judge(outcomes_[rank], child_of(rank));
    return std::move(outcomes_);
  }

 private:
  struct Child {
    pid_t pid = 0;
    bool ended = false;  // has a status
    bool hung = false;
    bool left_processes = false;
    int status = 0;
  };
  struct Stream {
    int fd = -1;
    std::string text;  // read, but not yet a whole frame
  };

  Child& child_of(int rank) { return children_[as_ == As::processes ? rank : 0]; }

  void start(const std::function<void(Rank&)>& body) {
    std::vector<std::array<int, 2>> pipes(size_);
    for (auto& ends : pipes) {
      if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("ranks: pipe failed");
    }
    std::fflush(nullptr);  // else children would write the buffered text again
    const pid_t parent = getpid();
    if (!placement_.fork) std::signal(SIGPIPE, SIG_IGN);
    for (int child = 0; placement_.fork && child < (as_ == As::processes ? size_ : 1); ++child) {
      placement_.before_fork(child);
      const pid_t pid = fork();
      if (pid == 0) become_child(child, parent, pipes, body);
      placement_.after_fork();
      if (pid < 0) throw std::runtime_error("ranks: fork failed");
      setpgid(pid, pid);  // parent and child both call it, because either may be first
      children_.push_back({.pid = pid});
    }
    for (int rank = 0; rank < size_; ++rank) {
      outcomes_[rank].rank = rank;
      outcomes_[rank].pid = placement_.fork ? child_of(rank).pid : parent;
      if (placement_.fork) close(pipes[rank][1]);
      fcntl(pipes[rank][0], F_SETFL, O_NONBLOCK);
      streams_[rank].fd = pipes[rank][0];
    }
    if (!placement_.fork) start_threads(pipes, body, threads_);
  }

  // The ranks, as threads of this process.
  void start_threads(const std::vector<std::array<int, 2>>& pipes, const std::function<void(Rank&)>& body,
                     std::vector<std::thread>& threads) {
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([this, rank, pipe = pipes[rank][1], body] { run_rank(rank, pipe, body); });
    }
  }

  void run_rank(int rank, int pipe, const std::function<void(Rank&)>& body) {
    std::mutex mutex;  // any thread may report
    const auto gather = [&](int channel, uint32_t round, const void* send, std::size_t bytes, void* recv) {
      exchange_.allgather(channel, rank, round, send, bytes, recv, deadline_);
    };
    const auto send = [&](char kind, std::string_view text) {
      const auto length = static_cast<uint32_t>(text.size());
      std::string frame(1, kind);
      frame.append(reinterpret_cast<const char*>(&length), sizeof length).append(text);
      const std::lock_guard lock(mutex);
      write_all(pipe, frame);  // fails where the parent has ended: then this process is about to end
    };
    Rank(rank, size_, gather, send).run(body);
    close(pipe);
  }

  [[noreturn]] void become_child(int child, pid_t parent, const std::vector<std::array<int, 2>>& pipes,
                                 const std::function<void(Rank&)>& body) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const pid_t found = getppid();  // 0: in another PID namespace
    if (found != parent && found != 0) _exit(1);
    setpgid(0, 0);  // so that a rank's children can be killed with it
    std::signal(SIGPIPE, SIG_IGN);
    sigset_t none{};
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    for (int rank = 0; rank < size_; ++rank) {
      close(pipes[rank][0]);
      if (as_ == As::processes && rank != child) close(pipes[rank][1]);
    }
    if (as_ == As::processes) {
      run_rank(child, pipes[child][1], [&](Rank& rank) {
        placement_.in_rank(child);
        body(rank);
      });
    } else {
      std::vector<std::thread> threads;
      start_threads(pipes, body, threads);
      for (auto& thread : threads) thread.join();
    }
    std::fflush(nullptr);
    _exit(0);  // not exit: atexit handlers are the parent's
  }

  // Reads all records until every rank has closed its pipe or has ended, or until the deadline.
  void listen() {
    const sigset_t signals = stops();
    constexpr timespec at_once{};
    constexpr int kLookMilliseconds = 20;  // a process that a rank left behind may hold the rank's pipe open
    for (int open = size_; open > 0 && Clock::now() < deadline_;) {
      std::vector<pollfd> polled;
      for (const auto& stream : streams_) polled.push_back({stream.fd, POLLIN, 0});
      poll(polled.data(), polled.size(), kLookMilliseconds);
      if (const int signal = sigtimedwait(&signals, nullptr, &at_once); signal > 0) {
        throw Error(signal == SIGINT ? ExitCode::interrupted : ExitCode::terminated,
                    std::string("ended by ") + strsignal(signal));
      }
      for (int rank = 0; rank < size_; ++rank) {
        if (streams_[rank].fd < 0) continue;
        const bool ended = has_ended(rank);  // checked before reading, so no record is missed
        if (read_all(rank) || ended) {
          close_stream(rank);
          --open;
        }
      }
    }
    for (int rank = 0; rank < size_; ++rank) close_stream(rank);
  }

  // Reads available data; true when the rank has closed its end.
  bool read_all(int rank) {
    std::array<char, 1 << 14> chunk;
    Stream& stream = streams_[rank];
    while (true) {
      const ssize_t count = read(stream.fd, chunk.data(), chunk.size());
      if (count == 0) return true;
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return errno != EAGAIN;
      stream.text.append(chunk.data(), static_cast<std::size_t>(count));
      take_frames(rank);
    }
  }

  void close_stream(int rank) {
    Stream& stream = streams_[rank];
    if (stream.fd < 0) return;
    close(stream.fd);
    stream.fd = -1;
    if (!outcomes_[rank].ok()) exchange_.give_up();  // the others do not wait for it
  }

  void take_frames(int rank) {
    constexpr std::size_t header = 1 + sizeof(uint32_t);
    std::string& text = streams_[rank].text;
    Outcome& outcome = outcomes_[rank];
    std::size_t at = 0;
    while (text.size() - at >= header) {
      uint32_t length = 0;
      std::memcpy(&length, text.data() + at + 1, sizeof length);
      if (text.size() - at - header < length) break;
      outcome.take(text[at], text.substr(at + header, length));
      at += header + length;
    }
    text.erase(0, at);
  }

  bool has_ended(int rank) {
    return placement_.fork ? has_ended(child_of(rank)) : outcomes_[rank].end != Outcome::End::hung;
  }

  // Polls, and keeps the wait status of a child that has ended.
  static bool has_ended(Child& child) {
    if (!child.ended) child.ended = waitpid(child.pid, &child.status, WNOHANG) == child.pid;
    return child.ended;
  }

  // Waits for the child; kills it at the deadline.
  void reap(Child& child) {
    while (!has_ended(child) && !child.hung) {
      child.hung = Clock::now() > deadline_;
      if (!child.hung) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (child.hung) {
      kill(child.pid, SIGKILL);
      waitpid(child.pid, &child.status, 0);
    }
    child.left_processes = end_group(child.pid);
  }

  // Kills the rest of the child's process group; true if there was any. Processes that are about to end may finish.
  static bool end_group(pid_t child) {
    const auto grace = Clock::now() + std::chrono::milliseconds(300);
    while (kill(-child, 0) == 0) {
      if (Clock::now() > grace) return kill(-child, SIGKILL) == 0;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  // Combines a rank's last record with the status of its process.
  void judge(Outcome& outcome, const Child& child) const {
    const bool said = outcome.end != Outcome::End::hung;
    outcome.left_processes = child.left_processes;
    if (child.hung) {
      if (as_ == As::processes || !said) outcome.end = Outcome::End::hung;
    } else if (WIFSIGNALED(child.status)) {
      outcome.end = Outcome::End::killed;
      outcome.number = WTERMSIG(child.status);
    } else if (WEXITSTATUS(child.status) != 0 || !said) {
      outcome.end = Outcome::End::exited;
      outcome.number = WEXITSTATUS(child.status);
    }
  }

  int size_;
  As as_;
  Clock::time_point deadline_;
  Placement placement_;
  Exchange exchange_;
  std::vector<Outcome> outcomes_;
  std::vector<Stream> streams_;
  std::vector<Child> children_;
  std::vector<std::thread> threads_;  // the ranks, if there is no child
};

std::vector<Outcome> run_ranks(int size, As as, std::chrono::milliseconds deadline,
                               const std::function<void(Rank&)>& body, Placement placement) {
  return World(size, as, deadline, std::move(placement)).run(body);
}

std::string failures(const std::vector<Outcome>& outcomes) {
  std::string text;
  for (const auto& outcome : outcomes) {
    if (!outcome.ok()) text += outcome.describe() + "\n";
  }
  return text;
}

}  // namespace ddprun::testing
