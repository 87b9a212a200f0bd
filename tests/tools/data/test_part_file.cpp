// The lock of a part always locks the file that has the name.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "tools/data/some_file.hpp"
#include "tools/data/transfer.hpp"

using ddprun::fetch::PartFile;
using namespace ddprun::testing;

TEST_CASE("a part is locked until it is released, and keeps its content") {
  const TempDir folder;
  const std::string path = (folder.path() / "file").string();
  auto first = PartFile::lock(path);
  REQUIRE(first);
  first->append("abc", 3);
  CHECK_FALSE(PartFile::lock(path));
  first.reset();
  const auto second = PartFile::lock(path);
  REQUIRE(second);
  CHECK(second->bytes() == 3);
  CHECK(second->path() == path + ".part");
  second->append("d", 1);
  CHECK(read_file(second->path()) == "abcd");
}

TEST_CASE("a part that was started again has no old content") {
  const TempDir folder;
  const std::string path = (folder.path() / "file").string();
  const auto part = PartFile::lock(path);
  REQUIRE(part);
  part->append("abcdef", 6);
  part->restart();
  part->append("xyz", 3);
  part->finish();
  CHECK(read_file(path) == "xyz");
  CHECK_FALSE(std::filesystem::exists(path + ".part"));
}

TEST_CASE("a lock is never on a file that another process has removed") {
  constexpr int kRounds = 3000;
  const TempDir folder;
  const std::string path = (folder.path() / "file").string();
  std::atomic<int> held{0}, wrong{0};
  const auto contend = [&] {
    for (int round = 0; round < kRounds; ++round) {
      const auto part = PartFile::lock(path);
      if (!part) continue;
      part->append("x", 1);
      std::error_code absent;
      if (std::filesystem::file_size(part->path(), absent) != 1 || absent) {
        ++wrong;
        continue;
      }
      ++held;
      part->remove();
    }
  };
  { std::jthread one(contend), two(contend), three(contend); }
  CHECK(held.load() > 0);
  CHECK(wrong.load() == 0);
}
