// replace_file, and where a path leads.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "base/file.hpp"
#include "ddprun/error.hpp"
#include "testing/temp_dir.hpp"

using namespace ddprun;
using testing::TempDir;

namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What can be read from a descriptor now.
std::string waiting_in(int fd) {
  std::array<char, 100> buffer{};
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  return got < 0 ? std::strerror(errno) : std::string(buffer.data(), static_cast<std::size_t>(got));
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

std::string error_of(const std::string& path) {
  try {
    replace_file(path, "new");
    return "no error";
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + ": " + error.what();
  }
}

}  // namespace

TEST_CASE("replace_file replaces the target of a link, also through several links, and keeps the links") {
  const TempDir dir;
  fs::create_directory(dir.path() / "below");
  dir.write("below/target", "old");
  fs::create_symlink("below/target", dir.path() / "near");
  fs::create_symlink(dir.path() / "near", dir.path() / "far");
  replace_file((dir.path() / "far").string(), "new");
  CHECK(content(dir.path() / "below/target") == "new");
  CHECK(fs::is_symlink(dir.path() / "near"));
  CHECK(fs::is_symlink(dir.path() / "far"));
  CHECK(files_in(dir.path()) == 3);
  CHECK(files_in(dir.path() / "below") == 1);
}

TEST_CASE("replace_file makes the file that a link names, if its folder exists") {
  const TempDir dir;
  fs::create_symlink("later", dir.path() / "link");
  replace_file((dir.path() / "link").string(), "new");
  CHECK(content(dir.path() / "later") == "new");
  const std::string lost = (dir.path() / "lost").string();
  fs::create_symlink("gone/later", lost);
  CHECK(error_of(lost) == "1: cannot write " + lost + ": there is no folder " + (dir.path() / "gone").string());
  fs::create_symlink("loop", dir.path() / "loop");
  CHECK(error_of((dir.path() / "loop").string()).ends_with(": Too many levels of symbolic links"));
}

TEST_CASE("replace_file writes to a FIFO, which stays") {
  const TempDir dir;
  const std::string path = (dir.path() / "fifo").string();
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  replace_file(path, "new");
  CHECK(waiting_in(reader) == "new");
  CHECK(fs::is_fifo(path));
  ::close(reader);
}

TEST_CASE("replace_file writes to a device, which stays, and reports that it is full") {
  const TempDir dir;  // with copies of the nodes: a mistake must not replace those of the machine
  const std::string null = (dir.path() / "null").string(), full = (dir.path() / "full").string();
  if (::mknod(null.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0 ||
      ::mknod(full.c_str(), S_IFCHR | 0600, makedev(1, 7)) != 0) {
    std::cout << "skipped: cannot make a device node: " << std::strerror(errno) << std::endl;
    return;
  }
  if (error_of(null).ends_with(": Permission denied")) {
    std::cout << "skipped: device nodes cannot be opened in " << dir.path().string() << std::endl;
    return;
  }
  CHECK(error_of(null) == "no error");
  CHECK(error_of(full) == "1: cannot write 3 bytes to " + full + ": No space left on device");
  CHECK(fs::is_character_file(null));
  CHECK(fs::is_character_file(full));
}

TEST_CASE("replace_file continues a descriptor of this process where it stands") {
  const TempDir dir;
  const std::string path = dir.write("out", "");
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(::write(fd, "one ", 4) == 4);
  fs::create_symlink("/dev/fd/" + std::to_string(fd), dir.path() / "link");
  replace_file("/dev/fd/" + std::to_string(fd), "two ");
  replace_file((dir.path() / "link").string(), "three ");
  REQUIRE(::write(fd, "four", 4) == 4);
  CHECK(content(path) == "one two three four");
  CHECK(files_in(dir.path()) == 2);
  ::close(fd);
  CHECK(error_of("/proc/self/fd/" + std::to_string(fd)).ends_with(": Bad file descriptor"));
}

TEST_CASE("only a name in the process's folder of descriptors names a descriptor") {
  const TempDir dir;
  CHECK(descriptor_of("/dev/stdin") == 0);
  CHECK(descriptor_of("/dev/fd/63") == 63);
  CHECK(descriptor_of("/proc/self/fd/7") == 7);
  for (const char* path : {"", "7", "/dev/null", "/proc/self/fd", "/dev/fd/x", "/no/such/7"}) {
    CAPTURE(path);
    CHECK_FALSE(descriptor_of(path));
  }
  CHECK_FALSE(descriptor_of(dir.write("7", "")));
}
