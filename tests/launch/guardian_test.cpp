#include "launch/guardian.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "launch/child.hpp"
#include "support/process.hpp"
#include "testing/temp_dir.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::launch;
using namespace std::chrono_literals;

// A launcher that starts `sleep` and is killed before it entrusts the process. Whether that ended too.
bool ends_with_its_launcher(const std::string& job_dir, const std::vector<std::string>& environment) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const pid_t launcher = ::fork();
  if (launcher == 0) {
    ::setsid();
    const Guardian guardian(job_dir);
    const Child child = spawn({"sleep", "20"}, environment_with(environment));
    if (::write(write_end.get(), &child.pid, sizeof child.pid) == sizeof child.pid) ::raise(SIGKILL);
    ::_exit(1);
  }
  pid_t rank = -1;
  REQUIRE(::read(read_end.get(), &rank, sizeof rank) == sizeof rank);
  int status = 0;
  REQUIRE(::waitpid(launcher, &status, 0) == launcher);
  REQUIRE(WIFSIGNALED(status));
  // Removing the folder is the guardian's last act.
  CHECK(ddprun::testing::eventually([&] { return !std::filesystem::exists(job_dir); }));
  const bool ended = ddprun::testing::eventually([&] { return !ddprun::testing::is_alive(rank); }, 1s);
  if (!ended) ::kill(rank, SIGKILL);
  return ended;
}

TEST_CASE("a rank that its launcher has started but not entrusted ends with the launcher, and no other process does") {
  const ddprun::testing::TempDir folder;
  const std::string job = (folder.path() / "job").string();
  std::filesystem::create_directory(job);
  CHECK(ends_with_its_launcher(job, {"DDPRUN_JOB_DIR=" + job}));
  std::filesystem::create_directory(job);
  CHECK_FALSE(ends_with_its_launcher(job, {"DDPRUN_JOB_DIR=" + job + "2"}));
}

}  // namespace
