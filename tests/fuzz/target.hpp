// What the fuzz targets share. A target is one function that libFuzzer calls with many inputs. It returns normally if
// the input is read, or refused with an error of this project. Everything else ends the process.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace ddprun::fuzz {

// Ends the process, so that libFuzzer keeps the input. `what`: the property that the input breaks.
inline void require(bool holds, const char* what, std::string_view detail = "") {
  if (holds) return;
  std::fprintf(stderr, "property: %s\n%.*s\n", what, static_cast<int>(detail.size()), detail.data());
  std::abort();
}

// An error is for a terminal: it names the file, and no byte of the file may control the terminal.
inline void require_message(std::string_view text, std::string_view path) {
  require(text.starts_with(path), "an error names the file", text);
  for (const char each : text) require(static_cast<unsigned char>(each) >= ' ', "an error is one line of text", text);
}

// A file in memory that has a path, for parsers that read files.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("fuzz", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    require(fd_ >= 0, "memfd_create works");
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::string& path() const { return path_; }
  std::string name() const { return std::to_string(fd_); }  // in the folder /proc/self/fd
  void write(const void* data, std::size_t bytes) {
    const bool written = ::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, data, bytes, 0) == static_cast<ssize_t>(bytes);
    require(written, "the file in memory is written");
  }

 private:
  const int fd_;
  const std::string path_;
};

}  // namespace ddprun::fuzz
