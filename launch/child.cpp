#include "launch/child.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "ddprun/error.hpp"

namespace ddprun::launch {
namespace {

// What posix_spawn does between fork and exec.
class SpawnPlan {
 public:
  SpawnPlan(int out, int err) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, out, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, err, STDERR_FILENO);

    sigset_t none;
    ::sigemptyset(&none);
    sigset_t all;
    ::sigfillset(&all);
    ::sigdelset(&all, SIGUSR2);  // a rank that cannot handle it yet must not end
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnPlan() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& string : strings) result.push_back(const_cast<char*>(string.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ExitCode::failure, std::string("cannot make a pipe for a rank's output: ") + std::strerror(errno));
  }
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

Child spawn(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  if (command.empty()) throw Error(ExitCode::failure, "cannot start a rank: no program was given");
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  const SpawnPlan plan(out.write.get(), err.write.get());
  Child child;
  const int error = ::posix_spawnp(&child.pid, command[0].c_str(), plan.actions(), plan.attributes(),
                                   pointers(command).data(), pointers(environment).data());
  if (error != 0) {
    throw Error(ExitCode::failure, "cannot start a rank: " + command[0] + ": " + std::strerror(error));
  }
  child.out = std::move(out.read);
  child.err = std::move(err.read);
  return child;
}

std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  const std::vector<std::string> own = {
      "DDPRUN_RANK=",    "DDPRUN_WORLD_SIZE=",   "DDPRUN_LOCAL_RANK=", "DDPRUN_LOCAL_WORLD_SIZE=",
      "DDPRUN_JOB_DIR=", "DDPRUN_LAUNCHER_PID=", "DDPRUN_STORE=",      "DDPRUN_TTY="};
  // posix_spawn passes both if a variable is there twice, and getenv finds the first.
  const auto replaced = [&](const std::string& variable) {
    const std::string name = variable.substr(0, variable.find('=') + 1);
    return std::any_of(added.begin(), added.end(), [&](const std::string& each) { return each.starts_with(name); });
  };
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    const auto names_it = [&](const std::string& name) { return variable.starts_with(name); };
    if (std::none_of(own.begin(), own.end(), names_it) && !replaced(variable)) result.push_back(variable);
  }
  result.insert(result.end(), added.begin(), added.end());
  return result;
}

}  // namespace ddprun::launch
