// Files. Unless its comment says otherwise, a function that reads or writes throws Error(failure) with the path and
// errno's text.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/unique_fd.hpp"
#include "ddprun/error.hpp"

namespace ddprun {

// Writes all bytes; reads until the end, or until `text` has `most` bytes. They return 0 or an errno.
int write_all(int fd, std::string_view bytes);
int read_all(int fd, std::string& text, size_t most = SIZE_MAX);

// The whole file, which the user has named. Throws Error(usage).
std::string read_text(const std::string& path);

// A file opened for writing. Single-threaded. The destructor closes it and ignores errors, so call close() if they
// matter.
class OutputFile {
 public:
  // Creates the file, or empties it; with `append`, what is written comes behind what it has.
  explicit OutputFile(std::string path, bool append = false);
  // Takes ownership of a descriptor that is open for writing; `path` is for messages.
  OutputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  // Writes all bytes, or throws an error with their number.
  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Returns when the bytes are on the device.
  void sync();
  void close();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  UniqueFd fd_;
};

// Makes created, renamed or removed names in the folder durable.
void sync_folder(const std::string& path);

// Where the symbolic links of `path` end; the file there need not exist. A link in /proc/self/fd (/dev/stdout,
// /dev/fd/3) is an end itself.
std::string end_of_links(const std::string& path);

// The descriptor of this process that `path` names, as /dev/stdout or /dev/fd/3 does; nothing for any other path.
std::optional<int> descriptor_of(const std::string& path);

// Throws Error(code) "<what>: there is no folder <folder>" unless end_of_links(path) has a parent folder, or is empty.
// For a check before long work.
void require_folder(const std::string& path, ExitCode code, const std::string& what);

// The temporary file of a process of this host (by default of this one) for `path`, in the same folder:
// "PATH.tmp-PID-HOST". Processes of other hosts, and of other containers, that share the folder have other names. No
// process writes two at once.
std::string aside_path(const std::string& path, int64_t process = ::getpid());

// Calls write(aside_path(path)), which makes that file, and renames it to `path`: a reader sees the old file, or the
// whole new one. If anything throws, the temporary file is removed.
void replace_by(const std::string& path, const std::function<void(const std::string& aside)>& write);

// Writes a temporary file in the same folder and renames it to end_of_links(path): a reader sees the old or the new
// text, and no temporary file stays. Not synced to the device. Writes to a descriptor, a device or a FIFO as it is,
// after what stdout still buffers. Throws Error(failure) that names `path`.
void replace_file(const std::string& path, std::string_view text);

// Throws "cannot <what> <path>: <errno's text>" as Error(failure). `number` is an errno.
[[noreturn]] void throw_file_error(std::string_view what, const std::string& path, int number);

}  // namespace ddprun
