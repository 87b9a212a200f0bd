#include <doctest/doctest.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/unique_fd.hpp"
#include "checkpoint/folder.hpp"
#include "checkpoint/some_tensors.hpp"
#include "support/error_of.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"

using namespace ddprun;
using namespace ddprun::checkpoint;
using namespace ddprun::testing;

namespace {

const std::vector<float> kWeight = {1, 2, 3};

std::string save(CheckpointFolder& folder, int64_t step) {
  return folder.save(step, 1, {vector_of("w", "F32", kWeight)}, {{"model", "linear"}});
}

std::set<std::string> names_in(const std::filesystem::path& dir) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) names.insert(entry.path().filename());
  return names;
}

// Counts how often files of a folder are opened. The kernel joins equal events that follow each other.
class Opens {
 public:
  explicit Opens(const std::string& dir) : events_(::inotify_init1(IN_NONBLOCK)) {
    REQUIRE(::inotify_add_watch(events_.get(), dir.c_str(), IN_OPEN) >= 0);
  }
  int count() const {
    int count = 0;
    alignas(inotify_event) std::array<char, 4096> buffer;
    for (ssize_t got; (got = ::read(events_.get(), buffer.data(), buffer.size())) > 0;) {
      for (ssize_t at = 0; at < got; ++count) {
        inotify_event event;
        std::memcpy(&event, buffer.data() + at, sizeof event);
        at += static_cast<ssize_t>(sizeof event + event.len);
      }
    }
    return count;
  }

 private:
  UniqueFd events_;
};

// The id of a process that has ended.
pid_t dead_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

// Ended, but its parent, this process, has not reaped it.
pid_t zombie() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t ended;
  waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
  return child;
}

}  // namespace

TEST_CASE("the newest whole commit has no damaged file, weights and states") {
  const TempDir dir;
  CheckpointFolder folder(dir.path(), 3);
  CHECK_FALSE(newest_whole(dir.path()));
  for (const int64_t step : {1, 2, 3}) {
    for (const int rank : {0, 1}) {
      save_state(dir.path(), step, rank, {vector_of("w", "F32", kWeight)}, {{"world", "2"}});
    }
    save(folder, step);
  }
  CHECK(newest_whole(dir.path())->step == 3);
  std::filesystem::remove(state_path(commit_at(dir.path(), 3), 1));
  CHECK(newest_whole(dir.path())->step == 2);
  const std::string weights = commit_at(dir.path(), 2).path;
  std::filesystem::resize_file(weights, std::filesystem::file_size(weights) - 1);
  CHECK(newest_whole(dir.path())->step == 1);
  std::filesystem::resize_file(state_path(commit_at(dir.path(), 1), 0), 3);
  CHECK(contains(error_of([&] { newest_whole(dir.path()); }), "step-00000003.state-rank1.safetensors: no such"));
}

TEST_CASE("64 ranks open two states each to resume; on another number of ranks, rank 0 opens all and the others one") {
  const TempDir dir;
  constexpr int kRanks = 64;
  const Commit commit = commit_at(dir.path(), 1);
  for (int rank = 0; rank < kRanks; ++rank) {
    save_state(dir.path(), 1, rank, {vector_of("w", "F32", kWeight)}, {{"rank", std::to_string(rank)}});
  }
  const Opens opens(dir.path());
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto states = read_states(commit, states_for(rank, kRanks, true));
    CHECK(states.at(rank).metadata.at("rank") == std::to_string(rank));
    CHECK(opens.count() == (rank == 0 ? 1 : 2));
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    read_states(commit, states_for(rank, kRanks, false));
    CHECK(opens.count() == (rank == 0 ? kRanks : 1));
  }
}

TEST_CASE("a commit is named after its step and carries step and epoch") {
  const TempDir dir;
  CheckpointFolder folder(dir.path() / "run/checkpoints", 2);
  const std::string path = save(folder, 469);
  CHECK(path == (dir.path() / "run/checkpoints/step-00000469.safetensors").string());
  CHECK(read_safetensors(path).metadata == Metadata{{"epoch", "1"}, {"model", "linear"}, {"step", "469"}});
  CHECK(names_in(folder.dir()).size() == 1);
}

TEST_CASE("the newest commits are kept, as many as requested") {
  const TempDir dir;
  CheckpointFolder folder(dir.path(), 2);
  for (const int64_t step : {1, 5, 99'999'999, 100'000'000}) save(folder, step);
  CHECK(names_in(dir.path()) == std::set<std::string>{"step-100000000.safetensors", "step-99999999.safetensors"});
  CHECK(list_commits(dir.path()).back().step == 100'000'000);
}

TEST_CASE("all commits are kept with 0") {
  const TempDir dir;
  CheckpointFolder folder(dir.path(), 0);
  for (const int64_t step : {1, 2, 3}) save(folder, step);
  CHECK(list_commits(dir.path()).size() == 3);
}

TEST_CASE("an empty folder and one that does not exist have no newest commit") {
  const TempDir dir;
  CHECK(list_commits(CheckpointFolder(dir.path(), 1).dir()).empty());
  CHECK(list_commits(dir.path() / "none").empty());
}

TEST_CASE("files with other names are not commits and are not removed") {
  const TempDir dir;
  const std::set<std::string> others = {"best.safetensors",
                                        "step-.safetensors",
                                        "step-1.safetensors",
                                        "step-0000000x.safetensors",
                                        "step-00000001.safetensors.bak",
                                        "step-1.state-rank0.safetensors",
                                        "step-00000001.state-rank.safetensors"};
  for (const std::string& name : others) dir.write(name, "");
  CheckpointFolder folder(dir.path(), 1);
  CHECK(list_commits(dir.path()).empty());
  save(folder, 7);
  save(folder, 8);
  std::set<std::string> expected = others;
  expected.insert("step-00000008.safetensors");
  CHECK(names_in(dir.path()) == expected);
}

TEST_CASE("files of dead writers are removed, those of a live writer and of another host are not") {
  const TempDir dir;
  const std::string live = aside_path("step-00000002.safetensors", getppid());
  dir.write(aside_path("step-00000001.safetensors", dead_process()), "half");
  dir.write(aside_path("step-00000003.safetensors"), "half");
  dir.write(aside_path("step-00000003.state-rank1.safetensors", dead_process()), "half");
  dir.write(aside_path("best.safetensors", dead_process()), "half");
  dir.write(aside_path("collectives-rank1.json", dead_process()), "half");
  const pid_t child = zombie();
  dir.write(aside_path("step-00000005.safetensors", child), "half");
  const std::string of_another_host = "step-00000004.safetensors.tmp-" + std::to_string(dead_process()) + "-0";
  for (const std::string& kept : {live, of_another_host}) dir.write(kept, "half");
  CheckpointFolder folder(dir.path(), 1);
  CHECK(names_in(dir.path()) == std::set<std::string>{live, of_another_host});
  waitpid(child, nullptr, 0);
}

TEST_CASE("states are removed with their commit; the next writer removes those without a commit") {
  const TempDir dir;
  CheckpointFolder folder(dir.path(), 1);
  for (const int64_t step : {3, 6}) {
    for (const int rank : {0, 1}) save_state(dir.path(), step, rank, {}, {{"rank", std::to_string(rank)}});
    save(folder, step);
  }
  const std::set<std::string> whole = {"step-00000006.safetensors", "step-00000006.state-rank0.safetensors",
                                       "step-00000006.state-rank1.safetensors"};
  CHECK(names_in(dir.path()) == whole);
  CHECK(read_safetensors(state_path(list_commits(dir.path()).back(), 1)).metadata == Metadata{{"rank", "1"}});
  save_state(dir.path(), 9, 0, {}, {});  // without a commit
  CHECK(list_commits(dir.path()).back().step == 6);
  const CheckpointFolder next(dir.path(), 1);
  CHECK(names_in(dir.path()) == whole);
}

TEST_CASE("the best is kept in addition to the commits, and replaced as a whole") {
  const TempDir dir;
  CheckpointFolder folder(dir.path(), 1);
  for (const int64_t step : {3, 6}) {
    CHECK(folder.save_best(step, 1, {vector_of("w", "F32", kWeight)}, {{"best", "test.loss"}}) ==
          best_path(dir.path()));
    save(folder, step);
  }
  CHECK(names_in(dir.path()) == std::set<std::string>{"best.safetensors", "step-00000006.safetensors"});
  CHECK(read_safetensors(best_path(dir.path())).metadata ==
        Metadata{{"best", "test.loss"}, {"epoch", "1"}, {"step", "6"}});
}

TEST_CASE("a commit is identified by its file name") {
  REQUIRE(commit_of("runs/a/checkpoints/step-00000012.safetensors"));
  CHECK(commit_of("runs/a/checkpoints/step-00000012.safetensors")->step == 12);
  CHECK_FALSE(commit_of("runs/a/checkpoints/best.safetensors"));
  CHECK_FALSE(commit_of("step-00000012.state-rank0.safetensors"));
}

TEST_CASE("a second commit of a step replaces the first") {
  const TempDir dir;
  CheckpointFolder folder(dir.path(), 2);
  save(folder, 7);
  folder.save(7, 2, {}, {});
  CHECK(list_commits(dir.path()).size() == 1);
  CHECK(read_safetensors(list_commits(dir.path()).back().path).metadata.at("epoch") == "2");
}

TEST_CASE("a step before the newest commit is refused, and the commit is kept") {
  const TempDir dir;
  CheckpointFolder folder(dir.path(), 1);
  save(folder, 8);
  const std::string error = error_of([&] { save(folder, 7); });
  CHECK(error.starts_with("2: "));
  CHECK(contains(error, "step-00000008.safetensors is of a later step"));
  CHECK(list_commits(dir.path()).back().step == 8);
}

TEST_CASE("a folder that cannot be created is reported with its path") {
  const TempDir dir;
  const std::string file = dir.write("file", "");
  const std::string error = error_of([&] { CheckpointFolder(file + "/checkpoints", 1); });
  CHECK(error.starts_with("1: "));
  CHECK(contains(error, file + "/checkpoints: Not a directory"));
}
