// A file during its download: `<name>.part` next to its final place, locked against other fetches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/file.hpp"

namespace ddprun::fetch {

// The SHA-256 of a file, as 64 hexadecimal digits. It is read piece by piece; an exception from `before_each` piece
// passes through. Throws Error(failure) with path and errno's message.
std::string sha256_of(
    const std::string& path, const std::function<void()>& before_each = [] {});

// One thread. Every function throws Error(failure) with path and errno's message if the system refuses.
class PartFile {
 public:
  // Opens or creates `<final_path>.part` and locks it (flock) for the lifetime of the object. Null: another process
  // holds the lock, or has just finished or removed that file: check the folder again.
  static std::unique_ptr<PartFile> lock(const std::string& final_path);

  const std::string& path() const { return file_.path(); }
  int64_t bytes() const { return bytes_; }

  void append(const char* data, size_t bytes);
  // Empties it.
  void restart();
  // Moves it to its final place durably: syncs the file, renames it, syncs the folder.
  void finish();
  // Deletes it. No function may be called after finish() or remove().
  void remove();

 private:
  PartFile(const std::string& final_path, int fd);
  bool still_there() const;

  std::string final_path_;
  OutputFile file_;
  int64_t bytes_ = 0;
};

}  // namespace ddprun::fetch
