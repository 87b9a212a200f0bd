#include "launch/failure.hpp"
#include "launch/rendezvous.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "base/unique_fd.hpp"
#include "ddprun/error.hpp"
#include "support/process.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"

namespace {

using namespace ddprun;
using namespace ddprun::launch;
using namespace ddprun::testing;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// The error of a call that must fail.
template <typename Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  FAIL("no error");
  return Error(ExitCode::ok, "");
}

std::string value_or_error(Store& store, const std::string& key) try {
  return store.require(key, milliseconds(20000));
} catch (const Error& error) {
  return error.what();
}

// While this object lives, opening the file blocks until release(), or for as long as the kernel allows, 45 s.
class Lease {
 public:
  explicit Lease(const std::filesystem::path& file) : file_(::open(file.c_str(), O_WRONLY | O_CLOEXEC)) {
    std::signal(SIGIO, SIG_IGN);  // the kernel sends it when a process waits
    held_ = fcntl(file_.get(), F_SETLEASE, F_WRLCK) == 0;
  }

  bool is_held() const { return held_; }  // some file systems have no leases
  bool is_wanted() const { return fcntl(file_.get(), F_GETLEASE) != F_WRLCK; }
  void release() const { fcntl(file_.get(), F_SETLEASE, F_UNLCK); }

 private:
  const UniqueFd file_;
  bool held_ = false;
};

TEST_CASE("a value comes back byte for byte") {
  const TempDir folder;
  const auto store = folder_store(folder.path());
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  for (const std::string& value : {std::string(), std::string("x"), bytes, std::string(3 << 20, 'y')}) {
    const std::string key = "size " + std::to_string(value.size());
    store->set(key, value);
    CHECK(store->get(key, milliseconds(0)) == value);
  }
}

TEST_CASE("keys that differ only in special characters stay different, and no file is outside the folder") {
  const TempDir folder;
  const auto store = folder_store(folder.path());
  const std::vector<std::string> keys = {
      "a/b", "a%2Fb", "a.b", "a_b", "../a", "/etc/passwd", ".", "..", "", "ü", "a b", std::string("a\0b", 3), "a\nb"};
  for (const std::string& key : keys) store->set(key, "value of " + key);
  for (const std::string& key : keys) CHECK(store->get(key, milliseconds(0)) == "value of " + key);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    files += entry.is_regular_file();
  CHECK(files == keys.size());
}

TEST_CASE("a key that is too long for a file name is refused") {
  const TempDir folder;
  const auto store = folder_store(folder.path());
  CHECK(error_of([&] { store->set(std::string(300, 'k'), ""); }).code() == ExitCode::rendezvous);
}

TEST_CASE("a key is set once") {
  const TempDir folder;
  const auto store = folder_store(folder.path());
  store->set("key", "first");
  const Error error = error_of([&] { store->set("key", "second"); });
  CHECK(error.code() == ExitCode::rendezvous);
  CHECK(contains(error.what(), "\"key\""));
  CHECK(store->get("key", milliseconds(0)) == "first");
}

TEST_CASE("get waits for a key that another thread sets, and returns immediately after that") {
  const TempDir folder;
  const auto store = folder_store(folder.path());
  Clock::duration longest{};
  for (int round = 0; round < 20; ++round) {
    const std::string key = "key" + std::to_string(round);
    Clock::time_point set_at;
    std::thread setter([&] {
      std::this_thread::sleep_for(milliseconds(5));
      set_at = Clock::now();
      store->set(key, "value");
    });
    CHECK(store->get(key, milliseconds(60000)) == "value");
    const auto got_at = Clock::now();
    setter.join();
    longest = std::max(longest, got_at - set_at);
  }
  MESSAGE("slowest of 20: ", std::chrono::duration<double, std::milli>(longest).count(), " ms");
  CHECK(longest < milliseconds(30000));
}

TEST_CASE("at the deadline get returns nothing, and require names the key and the time") {
  const TempDir folder;
  const auto store = folder_store(folder.path());
  const auto begin = Clock::now();
  const Error error = error_of([&] { store->require("nobody's", milliseconds(60)); });
  CHECK(Clock::now() - begin >= milliseconds(60));
  CHECK_FALSE(store->get("nobody's", milliseconds(0)).has_value());
  CHECK(error.code() == ExitCode::rendezvous);
  CHECK(contains(error.what(), "nobody's"));
  CHECK(contains(error.what(), " ms"));
}

TEST_CASE("get ends immediately when a rank has failed, with the code of a lost peer and the reason") {
  const TempDir folder;
  const auto store = folder_store(folder.path());
  std::thread failing([&] {
    std::this_thread::sleep_for(milliseconds(20));
    report_failure(folder.path(), 3, ExitCode::failure, "loss is NaN");
  });
  const Error error = error_of([&] { store->require("key", milliseconds(20000)); });
  failing.join();
  CHECK(error.code() == ExitCode::peer);
  CHECK(contains(error.what(), "rank 3"));
  CHECK(contains(error.what(), "loss is NaN"));
}

TEST_CASE("a key that is set is returned even when a rank has failed") {
  const TempDir folder;
  const auto store = folder_store(folder.path());
  store->set("key", "value");
  report_failure(folder.path(), 0, ExitCode::failure, "too late");
  CHECK(store->get("key", milliseconds(0)) == "value");
}

TEST_CASE("a key that was set before a rank failed is returned, even if it was set between two checks") {
  const TempDir folder;
  const auto store = folder_store(folder.path());
  report_failure(folder.path(), 0, ExitCode::failure, "later");
  // The lease blocks get() in its check for a failure until the key is set.
  const Lease lease(folder.path() / "failure.first");
  if (!lease.is_held()) {
    MESSAGE("skipped: no lease on a file of this file system");
    return;
  }
  std::string got;
  std::thread getter([&] { got = value_or_error(*store, "key"); });
  const bool looking = eventually([&] { return lease.is_wanted(); });
  store->set("key", "value");
  lease.release();
  getter.join();
  CHECK(looking);
  CHECK(got == "value");
}

TEST_CASE("a folder that others can access, or a path that is not a folder, is refused") {
  const TempDir folder;
  CHECK(error_of([&] { folder_store(folder.path() / "none"); }).code() == ExitCode::rendezvous);
  CHECK(error_of([&] { folder_store(folder.write("file", "")); }).code() == ExitCode::rendezvous);
  for (const mode_t mode : {0710, 0701, 0770, 0755}) {
    chmod(folder.path().c_str(), mode);
    CHECK(contains(error_of([&] { folder_store(folder.path()); }).what(), "chmod 700"));
  }
  chmod(folder.path().c_str(), 0700);
  std::filesystem::create_directory_symlink(folder.path(), folder.path() / "link");
  CHECK(error_of([&] { folder_store(folder.path() / "link"); }).code() == ExitCode::rendezvous);
}

TEST_CASE("a folder of another user is refused") {
  if (geteuid() != 0) {
    MESSAGE("skipped: only root can give a folder away");
    return;
  }
  const TempDir folder;
  REQUIRE(chown(folder.path().c_str(), 12345, 12345) == 0);
  CHECK(contains(error_of([&] { folder_store(folder.path()); }).what(), "another user"));
}

TEST_CASE("allgather returns all values to every thread, in rank order") {
  constexpr int kSize = 5;
  const TempDir folder;
  std::vector<std::vector<std::string>> results(kSize);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kSize; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto store = folder_store(folder.path());
      for (const char* name : {"first", "second"}) {
        results[static_cast<std::size_t>(rank)] =
            store->allgather(name, rank, kSize, name + std::to_string(rank), milliseconds(20000));
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const auto& result : results) {
    CHECK(result == std::vector<std::string>{"second0", "second1", "second2", "second3", "second4"});
  }
}

TEST_CASE("allgather joins processes") {
  constexpr int kSize = 3;
  const TempDir folder;
  std::vector<pid_t> children;
  for (int rank = 0; rank < kSize; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      int code = 1;
      try {
        const auto store = folder_store(folder.path());
        const auto all = store->allgather("g", rank, kSize, std::to_string(rank * rank), milliseconds(20000));
        code = all == std::vector<std::string>{"0", "1", "4"} ? 0 : 2;
      } catch (const std::exception&) {
      }
      _exit(code);
    }
    children.push_back(pid);
  }
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
}

TEST_CASE("allgather names the missing ranks") {
  const TempDir folder;
  const auto store = folder_store(folder.path());
  store->set("init/2", "");
  const Error error = error_of([&] { store->allgather("init", 0, 5, "", milliseconds(50)); });
  CHECK(error.code() == ExitCode::rendezvous);
  CHECK(contains(error.what(), "\"init\""));
  CHECK(contains(error.what(), "did not come: 1, 3, 4"));
}

}  // namespace
