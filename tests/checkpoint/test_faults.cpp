// A fault at every system call of a commit: the older or the new commit loads, never a mix, and no file is left over.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/faulty_calls.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoint/some_tensors.hpp"
#include "support/error_of.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"

using namespace ddprun;
using namespace ddprun::checkpoint;
using namespace ddprun::testing;

namespace {

constexpr int kRanks = 2;
constexpr int kFiles = kRanks + 1;  // of a commit

// A commit with the states of its ranks. Every element is the step.
void save(CheckpointFolder& folder, int64_t step) {
  const std::vector<int64_t> a(100, step);
  const std::vector<float> b(50, static_cast<float>(step));
  for (int rank = 0; rank < kRanks; ++rank) save_state(folder.dir(), step, rank, {vector_of("a", "I64", a)}, {});
  folder.save(step, 1, {vector_of("a", "I64", a), vector_of("b", "F32", b)}, {});
}

// The newest commit, checked element by element.
int64_t newest_kept(const std::string& dir) {
  const auto commits = list_commits(dir);
  if (commits.empty()) return 0;
  const File file = read_safetensors(commits.back().path);
  const int64_t step = commits.back().step;
  CHECK(values_of<int64_t>(file.at("a")) == std::vector<int64_t>(100, step));
  CHECK(values_of<float>(file.at("b")) == std::vector<float>(50, static_cast<float>(step)));
  for (int rank = 0; rank < kRanks; ++rank) {
    const File state = read_safetensors(state_path(commits.back(), rank));
    CHECK(values_of<int64_t>(state.at("a")) == std::vector<int64_t>(100, step));
  }
  return step;
}

int files_in(const std::string& dir) {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(dir), {}));
}

// The system calls of one commit, in order.
std::vector<std::string> calls_of_a_commit() {
  const TempDir dir;
  CheckpointFolder folder(dir.path(), 2);
  inject(Fault::none, 0);
  save(folder, 1);
  return injected();
}

}  // namespace

// The rename that gives the model file its name.
std::ptrdiff_t commit_call(const std::vector<std::string>& calls) {
  return std::find(calls.rbegin(), calls.rend(), "rename").base() - 1 - calls.begin();
}

TEST_CASE("each file is written, synced, closed and renamed, then its folder is synced; the model comes last") {
  const std::vector<std::string> state{"write", "write", "write", "fsync", "close", "rename", "fsync", "close"};
  std::vector<std::string> expected;
  for (int rank = 0; rank < kRanks; ++rank) expected.insert(expected.end(), state.begin(), state.end());
  expected.insert(expected.end(), {"write", "write", "write", "write", "fsync", "close", "rename", "fsync", "close"});
  CHECK(calls_of_a_commit() == expected);
}

TEST_CASE("a full or broken disk is reported at any call, and a commit that loads remains") {
  const std::vector<std::string> calls = calls_of_a_commit();
  const auto renamed = commit_call(calls);
  for (const Fault fault : {Fault::no_space, Fault::io_error}) {
    for (int at = 0; at < static_cast<int>(calls.size()); ++at) {
      const auto call = calls.begin() + at;
      if (*call == "close" && *(call - 1) == "fsync" && *(call - 2) == "rename")
        continue;  // close of a folder: nothing is lost
      CAPTURE(at);
      const TempDir dir;
      CheckpointFolder folder(dir.path(), 2);
      save(folder, 1);
      inject(fault, at);
      const std::string error = error_of([&] { save(folder, 2); });
      injected();
      CHECK(error.starts_with("1: "));
      CHECK(contains(error, dir.path().string()));
      CHECK(contains(error, fault == Fault::no_space ? "No space left on device" : "Input/output error"));
      if (calls[static_cast<size_t>(at)] == "write") CHECK(contains(error, " bytes to "));
      const int64_t expected = at > renamed ? 2 : 1;
      CHECK(newest_kept(dir.path()) == expected);
      const CheckpointFolder next(dir.path(), 2);
      CHECK(files_in(dir.path()) == kFiles * expected);
    }
  }
}

TEST_CASE("short writes are continued") {
  const auto calls = static_cast<int>(calls_of_a_commit().size());
  for (int at = 0; at < calls; ++at) {
    CAPTURE(at);
    const TempDir dir;
    CheckpointFolder folder(dir.path(), 2);
    inject(Fault::short_write, at);
    save(folder, 1);
    injected();
    CHECK(newest_kept(dir.path()) == 1);
  }
}

TEST_CASE("a kill at any call leaves the older or the new commit, and the next writer removes leftovers") {
  const std::vector<std::string> calls = calls_of_a_commit();
  const auto renamed = commit_call(calls);
  for (int at = 0; at < static_cast<int>(calls.size()); ++at) {
    CAPTURE(at);
    const TempDir dir;
    CheckpointFolder folder(dir.path(), 2);
    save(folder, 1);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      inject(Fault::kill, at);
      save(folder, 2);
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    const int64_t expected = at > renamed ? 2 : 1;
    CHECK(newest_kept(dir.path()) == expected);
    const CheckpointFolder next(dir.path(), 2);
    CHECK(files_in(dir.path()) == kFiles * expected);
  }
}

TEST_CASE("a real limit on the file size is reported with path and bytes, and leaves nothing behind") {
  const TempDir dir;
  CheckpointFolder folder(dir.path(), 2);
  save(folder, 1);
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &old) == 0);
  const rlimit small{512, old.rlim_max};
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string message = error_of([&] { save(folder, 2); });
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, old_handler);
  CHECK(contains(message, "step-00000002.state-rank0.safetensors"));
  CHECK(contains(message, "bytes to"));
  CHECK(contains(message, "File too large"));
  CHECK(newest_kept(dir.path()) == 1);
  CHECK(files_in(dir.path()) == kFiles);
}
