// A pseudo-terminal, and a program that runs in it.
#pragma once

#include <poll.h>
#include <pty.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

namespace ddprun::testing {

// Both ends of a terminal with this number of columns. text() reads what is written to fd().
class Pty {
 public:
  explicit Pty(unsigned short columns) {
    const winsize size{24, columns, 0, 0};
    if (openpty(&outer_, &inner_, nullptr, nullptr, &size) != 0) throw std::runtime_error("openpty failed");
  }
  ~Pty() {
    if (inner_ >= 0) close(inner_);
    close(outer_);
  }
  Pty(const Pty&) = delete;
  Pty& operator=(const Pty&) = delete;

  int fd() const { return inner_; }

  // All output until the last writer has ended, without carriage returns. Closes fd(). Throws after a minute.
  std::string text() {
    close(inner_);
    inner_ = -1;
    std::string all;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < deadline) {
      pollfd ready{outer_, POLLIN, 0};
      if (poll(&ready, 1, 100) <= 0) continue;
      char buffer[4096];
      const ssize_t got = read(outer_, buffer, sizeof buffer);
      if (got <= 0) return all;  // EIO: the terminal has no open descriptor left
      for (ssize_t i = 0; i < got; ++i) {
        if (buffer[i] != '\r') all += buffer[i];
      }
    }
    throw std::runtime_error("the terminal is still open; it shows:\n" + all);
  }

 private:
  int outer_ = -1;
  int inner_ = -1;
};

// The output of a program in a terminal with this number of columns, on stdout and stderr. `variables` override those
// of this process.
inline std::string run_in_terminal(unsigned short columns, const std::vector<std::string>& command,
                                   const std::vector<std::string>& variables) {
  Pty terminal(columns);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {1, 2}) posix_spawn_file_actions_adddup2(&actions, terminal.fd(), stream);
  posix_spawn_file_actions_addclose(&actions, terminal.fd());
  std::vector<char*> argv, environment;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& variable : variables) environment.push_back(const_cast<char*>(variable.c_str()));
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  argv.push_back(nullptr);
  environment.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + command[0]);
  struct Reaper {
    pid_t pid;
    ~Reaper() {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  } const reaper{pid};
  return terminal.text();
}

}  // namespace ddprun::testing
