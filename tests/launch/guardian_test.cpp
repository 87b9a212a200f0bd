// What is left of a launcher that was killed: nothing.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "launch/child.hpp"
#include "support/process.hpp"
#include "testing/temp_dir.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::launch;
using ddprun::testing::eventually;
using ddprun::testing::is_alive;
using namespace std::chrono_literals;

// Processes whose command line has this word.
std::vector<pid_t> processes_with(const std::string& word) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    std::string line;
    std::getline(std::ifstream(entry.path() / "cmdline", std::ios::binary), line);
    if (pid > 0 && line.find(word) != std::string::npos && is_alive(pid)) found.push_back(pid);
  }
  return found;
}

// A launcher with a guardian that starts `command` again and again, until it is killed `lifetime` after the guardian is
// there.
void start_and_kill(const std::string& job_dir, const std::vector<std::string>& command,
                    std::chrono::microseconds lifetime) {
  Pipe ready = make_pipe();
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    ::setsid();
    const Guardian guardian(job_dir);
    if (::write(ready.write.get(), "", 1) != 1) ::_exit(1);
    for (std::vector<Child> ranks;;) {
      ranks.push_back(spawn(command, environment_with({}), [&] { guardian.entrust(::getpid()); }));
    }
  }
  char byte = 0;
  REQUIRE(::read(ready.read.get(), &byte, 1) == 1);
  std::this_thread::sleep_for(lifetime);
  ::kill(launcher, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(launcher, &status, 0) == launcher);
  REQUIRE(WIFSIGNALED(status));
}

TEST_CASE("whenever a launcher is killed, its ranks, what they have started, and its folder are gone") {
  const ddprun::testing::TempDir folder;
  const std::string job = (folder.path() / "job").string();
  // The rank starts a process as soon as it can, in its group. The folder's name marks both.
  const std::vector<std::string> command = {"sh", "-c", "sleep 20 & wait", job};
  for (int trial = 0; trial < 40; ++trial) {
    CAPTURE(trial);
    std::filesystem::create_directory(job);
    start_and_kill(job, command, 2ms + trial * 173us);
    CHECK(eventually([&] { return !std::filesystem::exists(job); }));
    const bool gone = eventually([&] { return processes_with(job).empty(); }, 2s);
    CHECK(gone);
    for (const pid_t left : processes_with(job)) ::kill(left, SIGKILL);
  }
}

TEST_CASE("without a guardian, a rank still dies with its launcher") {
  const ddprun::testing::TempDir folder;
  const std::string file = (folder.path() / "pid").string();
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    const Child child = spawn({"sleep", "20"}, environment_with({}));
    std::ofstream(file) << child.pid << std::endl;
    ::pause();
  }
  pid_t rank = 0;
  REQUIRE(eventually([&] { return static_cast<bool>(std::ifstream(file) >> rank); }));
  ::kill(launcher, SIGKILL);
  ::waitpid(launcher, nullptr, 0);
  CHECK(eventually([&] { return !is_alive(rank); }, 2s));
}

TEST_CASE("a released group is left alone") {
  const ddprun::testing::TempDir folder;
  Child child;
  {
    const Guardian guardian((folder.path() / "none").string());
    child = spawn({"sleep", "20"}, environment_with({}), [&] { guardian.entrust(::getpid()); });
    guardian.release(child.pid);
  }
  CHECK(is_alive(child.pid));
  ::kill(child.pid, SIGKILL);
  ::waitpid(child.pid, nullptr, 0);
}

}  // namespace
