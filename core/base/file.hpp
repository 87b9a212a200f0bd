// Files written so that a fault is never silent. Every function throws Error(failure) with path and errno's words.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace ddprun {

// A file opened for writing. One thread.
class OutputFile {
 public:
  // Creates the file, or empties it.
  explicit OutputFile(std::string path);
  // Takes over a descriptor that is open for writing; `path` is for the messages.
  OutputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  // Closes it; a fault that only shows now is lost, so call close() where it matters.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // All of it, or an error that says how many bytes were to be written.
  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  // Returns once the bytes are on the device.
  void sync();
  void close();

  const std::string& path() const { return path_; }
  int fd() const { return fd_; }

 private:
  std::string path_;
  int fd_;
};

// Makes names that were created, renamed or removed in the folder durable.
void sync_folder(const std::string& path);

// The folder that `path` would be written into, where that is not there; else "". For asking before long work.
std::string missing_folder(const std::string& path);

// Writes a whole file aside in the same folder and renames it over `path`: a reader sees the old text or the new one,
// and no temporary file stays. Not synced to the device. Throws Error(failure) that names `path`.
void replace_file(const std::string& path, std::string_view text);

// "cannot <what> <path>: <errno's words>" as Error(failure). `number` is an errno.
[[noreturn]] void throw_file_error(std::string_view what, const std::string& path, int number);

}  // namespace ddprun
