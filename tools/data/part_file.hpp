// A file during its download: `<name>.part` next to its final place, locked against other fetches, hashed as it grows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/file.hpp"
#include "tools/data/sha256.hpp"

namespace ddprun::fetch {

// One thread. Every function throws Error(failure) with path and errno's message if the system refuses.
class PartFile {
 public:
  // Opens or creates `<final_path>.part` and locks it (flock) for the lifetime of the object. Reads and hashes its
  // content, piece by piece; an exception from `before_each` piece stops that and keeps the file. Null: another process
  // holds the lock, or has just finished or removed that file: check the folder again.
  static std::unique_ptr<PartFile> lock(
      const std::string& final_path, const std::function<void()>& before_each = [] {});

  const std::string& path() const { return file_.path(); }
  int64_t bytes() const { return bytes_; }
  // The hash of all its bytes.
  std::string sha256() const { return sum_.hex(); }

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
  Sha256 sum_;
  int64_t bytes_ = 0;
};

}  // namespace ddprun::fetch
