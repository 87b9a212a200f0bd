// A writer is killed at any moment: the newest commit is complete, and no commit that save() returned is lost.
#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/folder.hpp"
#include "checkpoint/some_tensors.hpp"
#include "testing/temp_dir.hpp"

using namespace ddprun::checkpoint;
using namespace ddprun::testing;

namespace {

constexpr int kTrials = 100;
constexpr size_t kElements = 64 << 10;

// Commits step after step forever, with a state; every element is the step. Writes each committed step to the pipe.
[[noreturn]] void write_for_ever(const std::string& dir, int64_t first_step, int pipe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  CheckpointFolder folder(dir, 2);
  for (int64_t step = first_step;; ++step) {
    const std::vector<int64_t> values(kElements, step);
    save_state(dir, step, 0, {vector_of("a", "I64", values)}, {});
    folder.save(step, 1, {vector_of("a", "I64", values), vector_of("b", "I64", values)}, {});
    if (write(pipe, &step, sizeof step) != sizeof step) _exit(1);
  }
}

// The first step in the pipe.
int64_t first_reported(int pipe) {
  pollfd entry{pipe, POLLIN, 0};
  int64_t step = 0;
  REQUIRE(poll(&entry, 1, 60'000) == 1);
  REQUIRE(read(pipe, &step, sizeof step) == sizeof step);
  return step;
}

// The last step in the pipe after its writer has ended; `none` if there was none.
int64_t last_reported(int pipe, int64_t none) {
  int64_t step = none;
  for (int64_t next = 0; read(pipe, &next, sizeof next) == sizeof next;) step = next;
  return step;
}

void check_whole(const Commit& commit) {
  const File file = read_safetensors(commit.path);
  const std::vector<int64_t> expected(kElements, commit.step);
  CHECK(file.metadata.at("step") == std::to_string(commit.step));
  CHECK(values_of<int64_t>(file.at("a")) == expected);
  CHECK(values_of<int64_t>(file.at("b")) == expected);
  CHECK(values_of<int64_t>(read_safetensors(state_path(commit, 0)).at("a")) == expected);
}

}  // namespace

TEST_CASE("after a kill at any moment the newest commit loads and is complete") {
  const TempDir dir;
  std::mt19937 random(12345);
  std::uniform_int_distribution<int> microseconds(0, 20'000);
  int64_t step = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    CAPTURE(trial);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      close(ends[0]);
      write_for_ever(dir.path(), step + 1, ends[1]);
    }
    close(ends[1]);
    // Even on a slow disk, some writers reach their second commit.
    const int64_t first = trial % 10 == 0 ? first_reported(ends[0]) : step;
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds(random)));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    const int64_t reported = last_reported(ends[0], first);
    close(ends[0]);

    const auto commits = list_commits(dir.path());
    // Two are kept, and a third may not be removed yet. A writer killed before its first save ends has removed none.
    if (reported > step) CHECK(commits.size() <= 3);
    for (const Commit& commit : commits) check_whole(commit);
    const int64_t newest = commits.empty() ? 0 : commits.back().step;
    CHECK(newest >= reported);
    CHECK(newest <= reported + 1);
    step = newest;
  }
  CHECK(step >= kTrials / 10);
  const CheckpointFolder after(dir.path(), 2);
  const auto files = std::distance(std::filesystem::directory_iterator(dir.path()), {});
  CHECK(files == 2 * static_cast<std::ptrdiff_t>(list_commits(after.dir()).size()));
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    CHECK(entry.path().extension() == ".safetensors");
  }
}
