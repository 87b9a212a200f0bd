#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "record/run_dir.hpp"
#include "support/error_of.hpp"
#include "testing/temp_dir.hpp"

using namespace ddprun;
using namespace ddprun::testing;

TEST_CASE("a run folder is named after the experiment and the time, and its parents are created") {
  const TempDir dir;
  const std::string path = record::make_run_dir((dir.path() / "a/b").string(), "mnist");
  CHECK(std::filesystem::is_directory(path));
  const auto parts = record::parse_run_name(std::filesystem::path(path).filename().string());
  REQUIRE(parts);
  CHECK(parts->name == "mnist");
  CHECK(parts->number == 1);
  CHECK(std::filesystem::path(path).parent_path() == dir.path() / "a/b");
}

TEST_CASE("runs that start in the same second get different folders") {
  const TempDir dir;
  constexpr int kRuns = 16;
  std::vector<std::string> paths(kRuns);
  std::vector<std::thread> threads;
  for (std::string& path : paths) {
    threads.emplace_back([&] { path = record::make_run_dir(dir.path().string(), "same"); });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(std::set<std::string>(paths.begin(), paths.end()).size() == kRuns);
  for (const std::string& path : paths) CHECK(std::filesystem::is_directory(path));
}

TEST_CASE("a run is the newest of its name, although the clock was ahead when an earlier one started") {
  const TempDir dir;
  for (const char* name : {"a-20991231-235959-3", "a-20200101-000000", "b-20991231-235959-9", "a-no-run"}) {
    std::filesystem::create_directory(dir.path() / name);
  }
  const auto in_dir = [&](const std::string& name) { return (dir.path() / name).string(); };
  CHECK(record::make_run_dir(dir.path().string(), "a") == in_dir("a-20991231-235959-4"));
  CHECK(record::make_run_dir(dir.path().string(), "a") == in_dir("a-20991231-235959-5"));
  CHECK(record::runs_in(dir.path().string(), "a").front() == in_dir("a-20991231-235959-5"));
  CHECK(record::runs_in(dir.path().string(), "a").back() == in_dir("a-20200101-000000"));
  CHECK(record::runs_in(dir.path().string()).size() == 5);
  CHECK(record::run_hint(dir.path().string()) == "; did you mean " + in_dir("b-20991231-235959-9") + "?");
  CHECK(record::run_hint(in_dir("a-no-run")).empty());
  CHECK(record::runs_in(in_dir("none")).empty());
}

TEST_CASE("the name of a run folder is parsed from its end, and other names are ignored") {
  const auto parsed = [](const std::string& folder) {
    const auto parts = record::parse_run_name(folder);
    return parts ? parts->name + " " + parts->time + " " + std::to_string(parts->number) : "";
  };
  CHECK(parsed("mnist-20261122-082621") == "mnist 20261122-082621 1");
  CHECK(parsed("mnist-20261122-082621-2") == "mnist 20261122-082621 2");
  CHECK(parsed("a-b-2-20261122-082621-14") == "a-b-2 20261122-082621 14");
  CHECK(parsed("of-20251231-235959-20261122-082621") == "of-20251231-235959 20261122-082621 1");
  CHECK(parsed("-20261122-082621") == " 20261122-082621 1");
  for (const char* other :
       {"", "-", "mnist", "mnist-2", "mnist-20261122", "mnist-20261122-08262", "mnist-2026112-082621",
        "mnist-20261122-082621-", "mnist-20261122-082621-x", "mnist-20261122-082621--2", "mnist-20261122-082621-2x",
        "mnist-20261122-082621-99999999999999999999", "mnist-20261122x082621", "mnist20261122-082621",
        "20261122-082621"}) {
    CAPTURE(other);
    CHECK_FALSE(record::parse_run_name(other));
  }
}

TEST_CASE("an output that is a file is reported with its path") {
  const TempDir dir;
  const std::string file = dir.write("runs", "not a folder");
  CHECK(error_of([&] { record::make_run_dir(file, "x"); }) ==
        "1: experiment.output: cannot create folder " + file + ": Not a directory");
  CHECK(error_of([&] { record::make_run_dir(file, "x", "--output"); }).starts_with("1: --output: cannot create "));
}

TEST_CASE("latest is the newest run in the folder runs, and any other path is itself") {
  const testing::InTempDir dir;
  CHECK(record::named_run("runs/a") == "runs/a");
  CHECK(testing::error_of([] { record::named_run("latest"); }) ==
        "2: latest: there is no run in the folder runs; name a run folder");
  for (const char* name : {"b-20261122-101500", "a-20261122-101501", "compare-20261122-101502"}) {
    std::filesystem::create_directories(std::string("runs/") + name);
    if (std::string(name).starts_with("compare")) continue;
    dir.write(std::string("runs/") + name + "/config.toml", "");
    dir.write(std::string("runs/") + name + "/steps-rank0.jsonl", "");
  }
  CHECK(record::named_run("latest") == "runs/a-20261122-101501");
  std::filesystem::create_directory("latest");
  CHECK(record::named_run("latest") == "latest");
}
