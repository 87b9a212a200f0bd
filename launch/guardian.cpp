#include "launch/guardian.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "ddprun/error.hpp"

namespace ddprun::launch {
namespace {

// Messages: the id of a group to watch; its negative to release it; 0: the job ended normally, nothing to clean up.
constexpr pid_t kDone = 0;

void leave_the_launcher() {
  ::setsid();
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  // Closes stdout and stderr, because readers of the launcher's output wait until all writers have closed it.
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2; ++fd) ::dup2(null, fd);
  if (null > 2) ::close(null);
}

bool leads_group_of_job(pid_t process, pid_t session, const std::string& job_dir) {
  if (::getpgid(process) != process || ::getsid(process) != session) return false;
  std::ifstream file("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry == "DDPRUN_JOB_DIR=" + job_dir) return true;
  }
  return false;
}

// The launcher may have died after it started a rank and before it entrusted the rank's group. The rank may even be
// between fork and exec then, without its variables, so this looks more than once.
void kill_unknown_groups(pid_t session, const std::string& job_dir) {
  constexpr int kLooks = 5;
  for (int look = 0; look < kLooks; ++look) {
    if (look > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
      const pid_t process = std::atoi(entry.path().filename().c_str());
      if (process > 0 && leads_group_of_job(process, session, job_dir)) ::kill(-process, SIGKILL);
    }
  }
}

[[noreturn]] void watch(int pipe, const std::string& job_dir) {
  const pid_t session = ::getsid(0);
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
  kill_unknown_groups(session, job_dir);
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
  notify(kDone);
  pipe_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Guardian::entrust(pid_t group) {
  notify(group);
}
void Guardian::release(pid_t group) {
  notify(-group);
}

void Guardian::notify(pid_t message) {
  // Writes of four bytes to a pipe are atomic. If the guardian was killed, the job continues; PR_SET_PDEATHSIG still
  // works.
  while (::write(pipe_.get(), &message, sizeof message) < 0 && errno == EINTR) {
  }
}

}  // namespace ddprun::launch
