#include "launch/job_folder.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "launch/files.hpp"
#include "tools/conformance/temp_dir.hpp"

namespace {

using namespace ddprun::launch;
using ddprun::testing::TempDir;
namespace fs = std::filesystem;

// Sets XDG_RUNTIME_DIR during a test.
class RuntimeDir {
 public:
  explicit RuntimeDir(const std::string& path)
      : before_(std::getenv("XDG_RUNTIME_DIR") ? std::getenv("XDG_RUNTIME_DIR") : "") {
    setenv("XDG_RUNTIME_DIR", path.c_str(), 1);
  }
  ~RuntimeDir() { before_.empty() ? unsetenv("XDG_RUNTIME_DIR") : setenv("XDG_RUNTIME_DIR", before_.c_str(), 1); }

 private:
  std::string before_;
};

TEST_CASE("a job's folder is private, and is removed with its content") {
  const TempDir base;
  const RuntimeDir runtime(base.path());
  std::string path;
  {
    const JobFolder folder;
    path = folder.path();
    CHECK(fs::path(path).parent_path() == base.path());
    CHECK_NOTHROW(require_private(path));
    CHECK(!publish(path, "key.x", "value"));
  }
  CHECK(!fs::exists(path));
}

TEST_CASE("without a usable XDG_RUNTIME_DIR the folder is made in /tmp") {
  for (const char* unusable : {"", "relative", "/does/not/exist", "/etc/hostname"}) {
    const RuntimeDir runtime(unusable);
    CHECK(job_folder_base() == "/tmp");
  }
}

TEST_CASE("a folder of a dead launcher is removed; one in use, one without a lock, and other folders stay") {
  const TempDir base;
  const RuntimeDir runtime(base.path());
  const JobFolder in_use;
  const fs::path dead = base.path() / "ddprun-job-dead01";
  const fs::path fresh = base.path() / "ddprun-job-fresh1";
  const fs::path stranger = base.path() / "somebody-else";
  for (const fs::path& folder : {dead, fresh, stranger}) {
    REQUIRE(fs::create_directory(folder));
    chmod(folder.c_str(), 0700);
  }
  publish(dead, "lock", "");
  publish(dead, "key.x", "value");
  publish(stranger, "lock", "");
  fs::create_directory_symlink(stranger, base.path() / "ddprun-job-link01");
  remove_stale_job_folders(base.path());
  CHECK(!fs::exists(dead));
  CHECK(fs::exists(fs::path(in_use.path()) / "lock"));
  CHECK(fs::exists(fresh));
  CHECK(fs::exists(stranger / "lock"));
  CHECK(fs::is_symlink(base.path() / "ddprun-job-link01"));
}

TEST_CASE("a file appears complete and is never replaced") {
  const TempDir folder;
  CHECK(!publish(folder.path(), "a", "first"));
  CHECK(publish(folder.path(), "a", "second") == std::errc::file_exists);
  CHECK(read_whole(folder.path() / "a") == "first");
  CHECK(!read_whole(folder.path() / "b").has_value());
  CHECK(publish(folder.path() / "none", "a", "") == std::errc::no_such_file_or_directory);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);  // no temporary file is left
}

}  // namespace
