#include "launch/child.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "base/file.hpp"
#include "base/subprocess.hpp"
#include "ddprun/error.hpp"

namespace ddprun::launch {
namespace {

[[noreturn]] void fail_to_start(const std::string& program, int error) {
  throw Error(ExitCode::failure, "cannot start a rank: " + program + std::strerror(error));
}

void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal != SIGUSR2) ::signal(signal, SIG_DFL);  // a rank that cannot handle SIGUSR2 yet must not end
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// `strings` as argv or environ, with the null at the end.
std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& string : strings) result.push_back(const_cast<char*>(string.c_str()));
  result.push_back(nullptr);
  return result;
}

// `body` runs in the child, which then exits with 127.
Child fork_child(const std::function<void()>& body) {
  Pipe out = make_pipe(), err = make_pipe();
  const pid_t parent = ::getpid();
  Child child{::fork(), {}, {}};
  if (child.pid < 0) fail_to_start("", errno);
  if (child.pid == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it ended before the prctl call, so no signal comes
    reset_signals();
    ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    ::dup2(out.write.get(), STDOUT_FILENO);
    ::dup2(err.write.get(), STDERR_FILENO);
    out = Pipe();
    err = Pipe();
    body();
    ::_exit(127);
  }
  ::setpgid(child.pid, child.pid);  // before anybody sends a signal to the group
  for (const Pipe* pipe : {&out, &err}) ::fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK);
  child.out = std::move(out.read);
  child.err = std::move(err.read);
  return child;
}

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
    if (got == sizeof message && message > 0) groups.insert(message);
    if (got == sizeof message && message < 0) groups.erase(-message);
  }
  for (const pid_t group : groups) ::kill(-group, SIGKILL);
  std::error_code ignored;
  std::filesystem::remove_all(job_dir, ignored);
  ::_exit(0);
}

}  // namespace

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ExitCode::failure, std::string("the launcher cannot make a pipe: ") + std::strerror(errno));
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Child spawn(const std::vector<std::string>& command, const std::vector<std::string>& environment,
            const std::function<void()>& before_exec) {
  if (command.empty()) throw Error(ExitCode::failure, "cannot start a rank: no program was given");
  const auto argv = pointers(command), variables = pointers(environment);
  Pipe failed = make_pipe();  // ends at exec, or has the errno of exec
  Child child = fork_child([&] {
    before_exec();
    ::execvpe(argv[0], argv.data(), variables.data());
    const int error = errno;
    if (::write(failed.write.get(), &error, sizeof error) < 0) ::_exit(126);
  });
  failed.write.reset();
  int error = 0;
  std::string bytes;
  if (read_all(failed.read.get(), bytes) != 0 || bytes.copy(reinterpret_cast<char*>(&error), sizeof error) == 0) {
    return child;
  }
  wait_for_child(child.pid);
  fail_to_start(command[0] + ": ", error);
}

Child fork_rank(const std::function<int()>& main, const std::vector<std::string>& environment,
                const std::function<void()>& before_start) {
  std::cout.flush();
  std::fflush(nullptr);  // otherwise the rank would write it too
  return fork_child([&] {
    before_start();
    auto variables = pointers(environment);
    environ = variables.data();
    ::_exit(main());
  });
}

std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  std::map<std::string, std::string> variables;  // with their names
  const auto name_of = [](const std::string& variable) { return variable.substr(0, variable.find('=')); };
  for (char** entry = environ; *entry != nullptr; ++entry) variables.emplace(name_of(*entry), *entry);
  for (const char* own : {"DDPRUN_RANK", "DDPRUN_WORLD_SIZE", "DDPRUN_LOCAL_RANK", "DDPRUN_LOCAL_WORLD_SIZE",
                          "DDPRUN_JOB_DIR", "DDPRUN_STORE", "DDPRUN_TTY"}) {
    variables.erase(own);
  }
  for (const std::string& variable : added) variables[name_of(variable)] = variable;
  std::vector<std::string> result;
  for (const auto& [name, variable] : variables) result.push_back(variable);
  return result;
}

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
