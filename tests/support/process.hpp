// A program that a test starts: its output goes to files, it must end before a deadline, and it never outlives the
// test.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "testing/temp_dir.hpp"

namespace ddprun::testing {

struct ProcessResult {
  int code = -1;    // exit code, or 128 + signal as in shells
  std::string out;  // with `joined`: both streams in the order of writing
  std::string err;
  std::chrono::milliseconds elapsed{};
};

// Polls until `done` is true or the time is over; returns its last result.
template <typename Predicate>
bool eventually(Predicate done, std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return done();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// True while the process exists and is not a zombie.
inline bool is_alive(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // the name may hold anything
  return name_end != std::string::npos && text[name_end + 2] != 'Z' && text[name_end + 2] != 'X';
}

class Process {
 public:
  // `variables` ("NAME=value") override those of this process. `joined`: stderr goes to the same file as stdout.
  Process(const std::vector<std::string>& command, const std::vector<std::string>& variables, bool joined = false)
      : joined_(joined), begin_(std::chrono::steady_clock::now()) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, out_path().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (joined) {
      posix_spawn_file_actions_adddup2(&actions, 1, 2);
    } else {
      posix_spawn_file_actions_addopen(&actions, 2, err_path().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    }
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    std::vector<char*> environment;
    for (const std::string& variable : variables) environment.push_back(const_cast<char*>(variable.c_str()));
    for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
    environment.push_back(nullptr);
    const int error = posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error("cannot start " + command[0]);
  }

  ~Process() {
    if (reaped_) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal) const { kill(pid_, signal); }
  std::string out() const { return read(out_path()); }
  std::string err() const { return joined_ ? out() : read(err_path()); }

  // Throws if the process has not ended by then.
  ProcessResult wait(std::chrono::milliseconds limit = std::chrono::seconds(50)) {
    int status = 0;
    if (!eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }, limit)) {
      throw std::runtime_error("still running after " + std::to_string(limit.count()) + " ms; it printed:\n" + out() +
                               err());
    }
    reaped_ = true;
    const auto elapsed = std::chrono::steady_clock::now() - begin_;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), out(), joined_ ? "" : err(),
            std::chrono::duration_cast<std::chrono::milliseconds>(elapsed)};
  }

 private:
  static std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  std::string out_path() const { return (folder_.path() / "out").string(); }
  std::string err_path() const { return (folder_.path() / "err").string(); }

  TempDir folder_;
  const bool joined_;
  const std::chrono::steady_clock::time_point begin_;
  pid_t pid_ = -1;
  bool reaped_ = false;
};

}  // namespace ddprun::testing
