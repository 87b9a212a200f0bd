#include "launch/job_folder.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <iostream>

#include "support/process.hpp"
#include "support/text.hpp"
#include "support/variable.hpp"
#include "testing/temp_dir.hpp"

namespace {

using namespace ddprun::launch;
using ddprun::testing::contains;
using ddprun::testing::Process;
using ddprun::testing::TempDir;
using ddprun::testing::Variable;
namespace fs = std::filesystem;

TEST_CASE("a job's folder is private, and is removed with its content") {
  const TempDir base;
  const Variable runtime("XDG_RUNTIME_DIR", base.path().string());
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

TEST_CASE("without a usable XDG_RUNTIME_DIR the folder is made in TMPDIR, and without that in /tmp") {
  const TempDir temporary;
  for (const char* unusable : {"", "relative", "/does/not/exist", "/etc/hostname"}) {
    const Variable runtime("XDG_RUNTIME_DIR", unusable);
    const Variable folder("TMPDIR", temporary.path().string());
    CHECK(job_folder_base() == temporary.path());
    const Variable none("TMPDIR", unusable);
    CHECK(job_folder_base() == "/tmp");
  }
}

TEST_CASE("where /tmp is read-only, as in many containers, TMPDIR is used, or the error names what to set") {
  const auto run = [](const std::string& temporary) {
    const std::string read_only = "mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp && exec \"$@\"";
    Process launcher({"/usr/bin/unshare", "--mount", "sh", "-c", read_only, "sh", FAKE_JOB, "1", "-", "1000"},
                     {"XDG_RUNTIME_DIR=", "TMPDIR=" + temporary});
    return launcher.wait(std::chrono::seconds(60));
  };
  const auto refused = run("");
  if (contains(refused.err, "unshare: ") || contains(refused.err, "mount: ")) {
    std::cout << "skipped: this user may not mount: " << refused.err;
    return;
  }
  CHECK(refused.code == 1);
  CHECK_MESSAGE(refused.err.starts_with("cannot make the job's folder /tmp/ddprun-job-"), refused.err);
  CHECK_MESSAGE(
      contains(refused.err, ": Read-only file system; set XDG_RUNTIME_DIR to a folder of this user, or TMPDIR"),
      refused.err);
  const auto accepted = run("/dev/shm");
  CHECK_MESSAGE(accepted.code == 0, accepted.err);
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
