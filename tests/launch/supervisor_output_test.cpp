// How the supervisor forwards the output of its ranks.
#include <fcntl.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <thread>

#include "base/unique_fd.hpp"
#include "launch/job.hpp"

namespace {

using namespace ddprun::launch::testing;
using ddprun::UniqueFd;

TEST_CASE(
    "ranks know their numbers; rank 0's output is unchanged, that of other ranks has a prefix on the same stream") {
  FakeJob job(3, {"*:show=DDPRUN_RANK", "*:show=DDPRUN_WORLD_SIZE", "*:show=DDPRUN_LOCAL_RANK",
                  "*:show=DDPRUN_LOCAL_WORLD_SIZE", "0:show=DDPRUN_TTY", "*:error=to stderr"});
  const auto result = job->wait();
  CHECK(result.code == 0);
  auto out = lines_of(result.out);
  std::sort(out.begin(), out.end());
  CHECK(out == std::vector<std::string>{
                   "DDPRUN_LOCAL_RANK=0", "DDPRUN_LOCAL_WORLD_SIZE=3", "DDPRUN_RANK=0", "DDPRUN_TTY=(unset)",
                   "DDPRUN_WORLD_SIZE=3", "[rank1] DDPRUN_LOCAL_RANK=1", "[rank1] DDPRUN_LOCAL_WORLD_SIZE=3",
                   "[rank1] DDPRUN_RANK=1", "[rank1] DDPRUN_WORLD_SIZE=3", "[rank2] DDPRUN_LOCAL_RANK=2",
                   "[rank2] DDPRUN_LOCAL_WORLD_SIZE=3", "[rank2] DDPRUN_RANK=2", "[rank2] DDPRUN_WORLD_SIZE=3"});
  auto err = lines_of(result.err);
  std::sort(err.begin(), err.end());
  CHECK(err == std::vector<std::string>{"[rank1] to stderr", "[rank2] to stderr", "to stderr"});
  CHECK(job.folder_gone());
}

TEST_CASE("an unfinished line is printed as a whole line, and of a redrawn one only the last state") {
  FakeJob job(2, {"1:part=half and ", "1:sleep=30", "1:part=half", "1:print=", "1:redraw=10%", "1:redraw=20%"});
  CHECK(job->wait().out == "[rank1] half and half\n[rank1] 20%\n");
}

TEST_CASE("much output from all ranks arrives complete, line by line, in log files too") {
  const TempDir logs;
  FakeJob job(3, {"*:flood=4"}, true, logs.path() / "made" / "for it");
  const auto result = job->wait();
  CHECK(result.code == 0);
  const std::string line(99, 'x');
  std::size_t plain = 0, first = 0, second = 0, other = 0;
  for (const std::string& got : lines_of(result.out)) {
    if (got == line)
      ++plain;
    else if (got == "[rank1] " + line)
      ++first;
    else if (got == "[rank2] " + line)
      ++second;
    else
      ++other;
  }
  CHECK(plain == 4 * 10486);
  CHECK(first == 4 * 10486);
  CHECK(second == 4 * 10486);
  CHECK(other == 0);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(fs::file_size(logs.path() / "made" / "for it" / ("rank" + std::to_string(rank) + ".log")) == 4 * 10486 * 100);
  }
}

TEST_CASE("rank 0's last line passes unchanged if it has no end") {
  FakeJob job(2, {"0:part=no end", "0:set=said", "1:get=said", "1:print=a line"});
  const auto result = job->wait();
  CHECK(result.code == 0);
  CHECK(result.out == "[rank1] a line\nno end");
}

TEST_CASE("a log folder that cannot be created ends the job before any rank starts") {
  const TempDir folder;
  FakeJob job(2, {"*:print=started"}, false, folder.write("file", "") + "/logs");
  const auto result = job->wait();
  CHECK(result.code == 1);
  CHECK(contains(result.err, "log folder"));
  CHECK(result.out.empty());
}

TEST_CASE("a reader that closes the pipe does not end the job") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  close(ends[0]);
  const TempDir logs;
  const pid_t launcher = fork();
  if (launcher == 0) {
    dup2(ends[1], 1);
    execl(FAKE_JOB, FAKE_JOB, "2", logs.path().c_str(), "1000", "*:print=a", "*:sleep=50", "*:print=b", nullptr);
    _exit(127);
  }
  close(ends[1]);
  int status = -1;
  REQUIRE(eventually([&] { return waitpid(launcher, &status, WNOHANG) == launcher; }));
  CHECK(status == 0);
  std::ifstream log(logs.path() / "rank1.log");
  CHECK(std::string(std::istreambuf_iterator<char>(log), {}) == "a\nb\n");
}

TEST_CASE("a reader that leaves at the end takes neither the cause of a failure nor the exit code with it") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const TempDir folder;
  const std::string errors = folder.path() / "errors", pid = folder.path() / "pid";
  const pid_t launcher = fork();
  if (launcher == 0) {
    dup2(ends[1], 1);
    dup2(open(errors.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 2);
    execl(FAKE_JOB, FAKE_JOB, "1", "-", "1000", ("0:pid=" + pid).c_str(), "0:flood=1", "0:exit=3", nullptr);
    _exit(127);
  }
  close(ends[1]);
  const pid_t rank = pid_in(pid);
  REQUIRE(eventually([&] { return kill(rank, 0) != 0; }));  // the launcher has reaped it
  std::this_thread::sleep_for(milliseconds(300));           // now it waits for the reader
  close(ends[0]);
  int status = -1;
  REQUIRE(eventually([&] { return waitpid(launcher, &status, WNOHANG) == launcher; }));
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 3);
  std::ifstream said(errors);
  CHECK(contains(std::string(std::istreambuf_iterator<char>(said), {}), "exited with code 3"));
}

TEST_CASE("on a terminal ranks learn its width, and a progress bar gives way to another rank's line") {
  const UniqueFd terminal(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(grantpt(terminal.get()) == 0);
  REQUIRE(unlockpt(terminal.get()) == 0);
  const winsize size{24, 97, 0, 0};
  REQUIRE(ioctl(terminal.get(), TIOCSWINSZ, &size) == 0);
  const pid_t launcher = fork();
  if (launcher == 0) {
    const int screen = open(ptsname(terminal.get()), O_RDWR | O_NOCTTY);
    dup2(screen, 1);
    dup2(screen, 2);
    execl(FAKE_JOB, FAKE_JOB, "2", "-", "1000", "0:show=DDPRUN_TTY", "0:redraw=50%", "0:set=drawn", "1:get=drawn",
          "1:error=a line", "1:set=reported", "0:get=reported", "0:sleep=1500", "0:redraw=100%", "0:print=", nullptr);
    _exit(127);
  }
  int status = -1;
  REQUIRE(eventually([&] { return waitpid(launcher, &status, WNOHANG) == launcher; }));
  CHECK(status == 0);
  std::string shown;
  std::array<char, 4096> buffer;
  // One read() may return a part; EIO marks the end.
  for (ssize_t got; (got = read(terminal.get(), buffer.data(), buffer.size())) > 0;) {
    shown.append(buffer.data(), static_cast<std::size_t>(got));
  }
  CHECK(shown == "DDPRUN_TTY=97\r\n\r50%\r\x1b[K[rank1] a line\r\n\r100%\r\n");
}

}  // namespace
