#include "launch/signals.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "launch/progress.hpp"
#include "launch/rendezvous.hpp"

namespace ddprun::launch {
namespace {

std::atomic<bool> deferred{false};
std::atomic<int> recorded{0};  // an ExitCode
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler uses it");

// Set before a signal is deferred.
bool acknowledges = false;
const char* erase_line = "";
constexpr const char* kStopping =
    "ddprun: stopping after this step, with a checkpoint (a second signal ends the run at once)\n";

// In a signal handler.
void write_to_terminal(const char* text) {
  const int before = errno;
  for (const char* part : {erase_line, text}) {
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  }
  errno = before;
}

extern "C" void on_stop_signal(int signal) {
  const auto code = static_cast<int>(signal == SIGINT ? ExitCode::interrupted : ExitCode::terminated);
  int none = 0;
  if (deferred && recorded.compare_exchange_strong(none, code)) {
    if (acknowledges) write_to_terminal(kStopping);
    return;
  }
  if (recorded != 0 && signal == SIGUSR1) return;  // the same request again
  if (acknowledges) write_to_terminal("");
  ::_exit(code);
}

const ProgressTable* requests = nullptr;  // those of the launcher; never freed, because a signal may always come

// In a job that survives deaths, it ends only this rank. But Slurm may send it to every process of the job: then the
// launcher requests a stop, and this rank must save.
extern "C" void on_leave_signal(int signal) {
  const int before = errno;
  const auto stays = [] { return recorded != 0 || requests->stop_requested(); };
  for (int turn = 0; turn < 10 && !stays(); ++turn) ::poll(nullptr, 0, 10);
  errno = before;
  if (stays()) return;
  ::signal(signal, SIG_DFL);
  ::raise(signal);  // blocked until this returns
}

std::atomic<bool> usr2_is_held{false};

sigset_t block_usr2() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

struct sigaction set_handler(int signal, void (*handler)(int)) {
  struct sigaction action {
  }, before{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, &before);
  return before;
}

}  // namespace

Signals::Signals(std::initializer_list<int> more) {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) ::sigaddset(&wanted, signal);
  for (const int signal : more) ::sigaddset(&wanted, signal);
  fd_ = UniqueFd(::signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd_) throw Error(ExitCode::failure, std::string("the launcher cannot watch signals: ") + std::strerror(errno));
  ::pthread_sigmask(SIG_BLOCK, &wanted, &mask_before_);
  pipe_before_ = set_handler(SIGPIPE, SIG_IGN);
  ::signal(SIGUSR2, SIG_IGN);  // a blocked signal comes nevertheless
  // If our parent ignores SIGCHLD, we inherit that, and the kernel would reap the ranks itself.
  set_handler(SIGCHLD, SIG_DFL);
}

Signals::~Signals() {
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::optional<int> Signals::next() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

void catch_stop_signals() {
  for (const int signal : {SIGINT, SIGTERM}) set_handler(signal, on_stop_signal);
  if (survives() && requests == nullptr) {
    requests = new ProgressTable(std::getenv("DDPRUN_JOB_DIR"), std::atoi(std::getenv("DDPRUN_LOCAL_WORLD_SIZE")));
  }
  set_handler(SIGUSR1, survives() ? on_leave_signal : on_stop_signal);
}

void defer_stop_signals() {
  deferred = true;
}

void acknowledge_stop_signals(bool on_terminal) {
  acknowledges = true;
  if (on_terminal) erase_line = "\x1b[2K\r";
}

ExitCode stop_signal() {
  return static_cast<ExitCode>(recorded.load());
}

void hold_usr2() {
  block_usr2();
  // For a thread that exists already, for example of a library: the signal must not end the process.
  set_handler(SIGUSR2, [](int) {});
  usr2_is_held = true;
}

void send_held_usr2(int value) {
  if (usr2_is_held) ::sigqueue(::getpid(), SIGUSR2, {.sival_int = value});
}

Usr2Thread::Usr2Thread(std::function<void(int)> handle)
    : thread_([handle = std::move(handle)](const std::stop_token& stop) {
        const sigset_t set = block_usr2();
        while (true) {
          siginfo_t info{};
          if (::sigwaitinfo(&set, &info) != SIGUSR2) continue;
          if (stop.stop_requested()) return;
          handle(info.si_code == SI_QUEUE ? info.si_value.sival_int : 0);
        }
      }) {}

Usr2Thread::~Usr2Thread() {
  thread_.request_stop();
  ::pthread_kill(thread_.native_handle(), SIGUSR2);
}

}  // namespace ddprun::launch
