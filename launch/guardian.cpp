#include "launch/guardian.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/subprocess.hpp"
#include "ddprun/error.hpp"
#include "launch/child.hpp"

namespace ddprun::launch {
namespace {

// The pipe has the ids of groups, and their negatives when they are released.
[[noreturn]] void watch(int pipe, const std::string& job_dir) {
  ::setsid();
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  // Closes stdout and stderr, because readers of the launcher's output wait until all writers have closed it.
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2; ++fd) ::dup2(null, fd);
  if (null > 2) ::close(null);
  std::set<pid_t> groups;
  pid_t message = 0;
  for (ssize_t got = 0; (got = ::read(pipe, &message, sizeof message)) != 0;) {
    if (got != sizeof message) continue;
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
  Pipe pipe = make_pipe();
  pipe_ = std::move(pipe.write);
  pid_ = ::fork();
  if (pid_ < 0) throw Error(ExitCode::failure, std::string("the launcher cannot fork: ") + std::strerror(errno));
  if (pid_ == 0) {
    pipe_.reset();
    watch(pipe.read.get(), job_dir);
  }
}

Guardian::~Guardian() {
  pipe_.reset();
  wait_for_child(pid_);
}

void Guardian::notify(pid_t message) const {
  // Writes of four bytes to a pipe are atomic. If the guardian was killed, the job continues; PR_SET_PDEATHSIG still
  // works.
  while (::write(pipe_.get(), &message, sizeof message) < 0 && errno == EINTR) {
  }
}

}  // namespace ddprun::launch
