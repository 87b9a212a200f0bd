#include "launch/guardian.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>

#include "ddprun/error.hpp"

namespace ddprun::launch {
namespace {

// Messages: the number of a group to watch, and its negative to forget it; 0: all went well, there is nothing to do.
constexpr pid_t kDone = 0;

void leave_the_launcher() {
  ::setsid();
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  // The launcher's readers wait for the end of its output, not of ours.
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2; ++fd) ::dup2(null, fd);
  if (null > 2) ::close(null);
}

[[noreturn]] void watch(int pipe, const std::string& job_dir) {
  leave_the_launcher();
  std::set<pid_t> groups;
  pid_t message = kDone;
  while (true) {
    const ssize_t got = ::read(pipe, &message, sizeof message);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof message) break;  // the launcher died
    if (message == kDone) ::_exit(0);
    if (message > 0) {
      groups.insert(message);
    } else {
      groups.erase(-message);
    }
  }
  for (const pid_t group : groups) ::kill(-group, SIGKILL);
  std::error_code ignored;
  std::filesystem::remove_all(job_dir, ignored);
  ::_exit(0);
}

}  // namespace

Guardian::Guardian(const std::string& job_dir) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ExitCode::failure, std::string("the launcher cannot make a pipe: ") + std::strerror(errno));
  }
  UniqueFd read_end(ends[0]);
  pipe_ = UniqueFd(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0) throw Error(ExitCode::failure, std::string("the launcher cannot fork: ") + std::strerror(errno));
  if (pid_ == 0) {
    pipe_.reset();
    watch(read_end.get(), job_dir);
  }
}

Guardian::~Guardian() {
  tell(kDone);
  pipe_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guardian::entrust(pid_t group) {
  tell(group);
}
void Guardian::release(pid_t group) {
  tell(-group);
}

void Guardian::tell(pid_t message) {
  // Four bytes into a pipe that its reader empties: whole or not at all. A guardian that someone killed is no reason to
  // end the job; PR_SET_PDEATHSIG still holds.
  while (::write(pipe_.get(), &message, sizeof message) < 0 && errno == EINTR) {
  }
}

}  // namespace ddprun::launch
