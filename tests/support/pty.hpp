// A pseudo-terminal, and a program that runs in it.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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

// A program in a terminal with this number of columns, which is its controlling terminal. `variables` override those of
// this process. The program never outlives this object.
class InTerminal {
 public:
  InTerminal(unsigned short columns, const std::vector<std::string>& command,
             const std::vector<std::string>& variables) {
    const winsize size{24, columns, 0, 0};
    char name[64];
    int inner = -1;
    if (openpty(&outer_, &inner, name, nullptr, &size) != 0) throw std::runtime_error("openpty failed");
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, name, O_RDWR, 0);  // so it becomes the controlling terminal
    for (const int stream : {1, 2}) posix_spawn_file_actions_adddup2(&actions, 0, stream);
    for (const int end : {inner, outer_}) posix_spawn_file_actions_addclose(&actions, end);
    std::vector<char*> argv, environment;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& variable : variables) environment.push_back(const_cast<char*>(variable.c_str()));
    for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
    argv.push_back(nullptr);
    environment.push_back(nullptr);
    const int error = posix_spawn(&pid_, argv[0], &actions, &attributes, argv.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(inner);
    if (error != 0) throw std::runtime_error("cannot start " + command[0]);
  }
  ~InTerminal() {
    close(outer_);
    if (reaped_) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  InTerminal(const InTerminal&) = delete;
  InTerminal& operator=(const InTerminal&) = delete;

  pid_t pid() const { return pid_; }
  void type(const std::string& keys) const {
    if (write(outer_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size())) throw std::runtime_error("write");
  }

  // Reads until the output has this text. Throws after a minute, or if the program ends before.
  void wait_for(const std::string& text) {
    const auto has_text = [&] { return output_.find(text) != std::string::npos; };
    read_until(has_text);
    if (!has_text()) throw std::runtime_error("no \"" + text + "\" in:\n" + output_);
  }
  // Reads until the last writer has ended. Returns the exit code, or 128 + signal.
  int wait() {
    read_until([] { return false; });
    int status = 0;
    waitpid(pid_, &status, 0);
    reaped_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  // All bytes so far.
  const std::string& output() const { return output_; }
  // The lines that the terminal shows, for carriage returns, line breaks, erased lines and colours.
  std::vector<std::string> screen() const {
    std::vector<std::string> lines(1);
    std::size_t column = 0;
    for (std::size_t i = 0; i < output_.size(); ++i) {
      std::string& line = lines.back();
      if (output_[i] == '\r') {
        column = 0;
      } else if (output_[i] == '\n') {
        lines.emplace_back();
        column = 0;
      } else if (output_.compare(i, 2, "\x1b[") == 0) {
        const std::size_t end = output_.find_first_of("mK", i);
        const std::string code = output_.substr(i, end - i + 1);
        if (code == "\x1b[2K") line.clear();
        if (code == "\x1b[K") line.resize(std::min(column, line.size()));
        i = end;
      } else {
        if (line.size() <= column) line.resize(column + 1, ' ');
        line[column++] = output_[i];
      }
    }
    return lines;
  }

 private:
  template <class Done>
  void read_until(Done done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) {
        throw std::runtime_error("the terminal is still open; it shows:\n" + output_);
      }
      pollfd ready{outer_, POLLIN, 0};
      if (poll(&ready, 1, 100) <= 0) continue;
      char buffer[4096];
      const ssize_t got = read(outer_, buffer, sizeof buffer);
      if (got <= 0) return;  // EIO: the terminal has no open descriptor left
      output_.append(buffer, static_cast<std::size_t>(got));
    }
  }

  int outer_ = -1;
  pid_t pid_ = -1;
  bool reaped_ = false;
  std::string output_;
};

// The whole output of a program in a terminal, without carriage returns.
inline std::string run_in_terminal(unsigned short columns, const std::vector<std::string>& command,
                                   const std::vector<std::string>& variables) {
  InTerminal program(columns, command, variables);
  program.wait();
  std::string text = program.output();
  std::erase(text, '\r');
  return text;
}

}  // namespace ddprun::testing
