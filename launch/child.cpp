#include "launch/child.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>

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

}  // namespace ddprun::launch
