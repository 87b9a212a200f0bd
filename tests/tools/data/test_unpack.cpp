// Archives that are unpacked after they have been verified.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "tools/data/fetching.hpp"

using namespace ddprun;
using namespace ddprun::testing;
namespace fs = std::filesystem;

namespace {

// An archive with the folder `set` of the files a and b, and one further file, in the folder of a user.
struct Archive {
  TempDir content, folder;
  fetch::RemoteFile file{"set.tar.gz", 0, "", {"set/a", "set/b"}};

  Archive() {
    fs::create_directory(content.path() / "set");
    for (const char* name : {"a", "b", "other"}) content.write(std::string("set/") + name, name);
  }
  std::string path() const { return (folder.path() / file.name).string(); }
  void pack() const {
    REQUIRE(std::system(("tar -czf " + path() + " -C " + content.path().string() + " set").c_str()) == 0);
  }
  // The line, or "<exit code>: <error>".
  std::string unpack() const {
    std::string line;
    const std::string error = error_of([&] { line = fetch::unpack(file, folder.path().string()); });
    return error == "no error" ? line : error;
  }
  bool holds_only_the_archive() const {
    return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1;
  }
};

}  // namespace

TEST_CASE("the named members of an archive are unpacked once; files that are there stay") {
  const Archive archive;
  archive.pack();
  const std::string target = (archive.folder.path() / "set").string();
  CHECK(archive.unpack() == "unpacked into " + target);
  CHECK(read_file(fs::path(target) / "a") == "a");
  CHECK(read_file(fs::path(target) / "b") == "b");
  CHECK_FALSE(fs::exists(fs::path(target) / "other"));
  archive.folder.write("set/a", "of the user");
  CHECK(archive.unpack() == "already unpacked in " + target);
  CHECK(read_file(fs::path(target) / "a") == "of the user");
  fs::remove(fs::path(target) / "b");
  CHECK(archive.unpack() == "2: " + target + " is there, but it lacks files of " + archive.path() +
                                "; move it away and run the command again");
  CHECK(std::distance(fs::directory_iterator(archive.folder.path()), fs::directory_iterator()) == 2);
}

TEST_CASE("a damaged archive, a missing member or a link leaves nothing behind") {
  const Archive damaged;
  damaged.folder.write("set.tar.gz", "no archive");
  CHECK(damaged.unpack().starts_with("1: cannot unpack " + damaged.path() + ": "));
  CHECK(damaged.holds_only_the_archive());

  const Archive missing;
  fs::remove(missing.content.path() / "set/b");
  missing.pack();
  CHECK(missing.unpack().starts_with("1: cannot unpack " + missing.path() + ": "));
  CHECK(missing.holds_only_the_archive());

  const Archive link;
  fs::remove(link.content.path() / "set/b");
  fs::create_symlink("/etc/passwd", link.content.path() / "set/b");
  link.pack();
  CHECK(link.unpack() == "1: cannot unpack " + link.path() + ": a member is no regular file");
  CHECK(link.holds_only_the_archive());
}

TEST_CASE("a data set whose file is an archive is usable after it was fetched") {
  Archive archive;
  archive.pack();
  const std::string bytes = read_file(archive.path());
  archive.file.bytes = static_cast<int64_t>(bytes.size());
  archive.file.sha256 = sha256_of(bytes);
  const TempDir root;
  const std::string folder = root.path().string();
  fetch::fetch({"some", folder, true, {"file://" + archive.folder.path().string() + "/"}, {archive.file}}, {});
  CHECK(read_file(root.path() / "set/b") == "b");
}
