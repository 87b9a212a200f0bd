// A file on its way: `<name>.part` beside its final place, locked against other fetches, hashed as it grows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/file.hpp"
#include "tools/data/sha256.hpp"

namespace ddprun::fetch {

// One thread. Every function throws Error(failure) with path and errno's words where the system refuses.
class PartFile {
 public:
  // Opens or makes `<final_path>.part` and takes its lock (flock), which lasts as long as the object. What it holds
  // already is read and hashed, piece by piece; what `before_each` piece throws ends that, and the file stays. Null:
  // another process holds the lock, or has just finished or removed that very file: look at the folder again.
  static std::unique_ptr<PartFile> lock(
      const std::string& final_path, const std::function<void()>& before_each = [] {});

  const std::string& path() const { return file_.path(); }
  int64_t bytes() const { return bytes_; }
  // Of all its bytes.
  std::string sha256() const { return sum_.hex(); }

  void append(const char* data, size_t bytes);
  // Empties it.
  void restart();
  // Puts it in its final place, durably: synced, renamed, the folder synced.
  void finish();
  // Deletes it. Neither this nor any other function may be called after finish() or remove().
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
