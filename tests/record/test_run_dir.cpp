#include <doctest/doctest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "record/run_dir.hpp"
#include "support/contains.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"

using namespace ddprun;
using namespace ddprun::testing;

TEST_CASE("a run folder is named after the experiment and the time, its parents made as needed") {
  const TempDir dir;
  const std::string path = record::make_run_dir((dir.path() / "a/b").string(), "mnist");
  CHECK(std::filesystem::is_directory(path));
  CHECK(std::regex_match(std::filesystem::path(path).filename().string(), std::regex("mnist-[0-9]{8}-[0-9]{6}")));
  CHECK(std::filesystem::path(path).parent_path() == dir.path() / "a/b");
}

TEST_CASE("runs that start in the same second get folders of their own") {
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

TEST_CASE("an output that is a file is told by its path") {
  const TempDir dir;
  const std::string file = dir.write("runs", "not a folder");
  const std::string error = error_of([&] { record::make_run_dir(file, "x"); });
  CHECK(error.starts_with("1: "));
  CHECK(contains(error, file + ": Not a directory"));
}
