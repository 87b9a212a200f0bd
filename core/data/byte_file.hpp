// A file that is read as bytes from front to back, unpacked when it is gzip. Private to the module.
#pragma once

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace ddprun::data {

// `plain`, or else `plain` + ".gz", whichever is there; empty when neither is. Throws InvalidDataset("root") where it
// is no regular file or cannot be looked at.
std::string find_file(const std::string& plain);

// How to get the files of a data set that `ddprun data fetch` knows by this name.
std::string fetch_advice(const std::string& name, const std::string& root, const std::string& default_root);

// Throws InvalidDataset("root") unless `root` is a folder; where nothing is there, with `advice`.
void check_root(const std::string& root, const std::string& advice);

// Throws InvalidDataset("root"): what is wrong with the content of a file, and where.
[[noreturn]] void fail_at(const std::string& path, std::size_t offset, const std::string& what);

// Whether a file is gzip is seen from its first two bytes, not from its name. One thread. Throws InvalidDataset("root")
// with the path, and the offset in the packed file where packed data is damaged.
class ByteFile {
 public:
  explicit ByteFile(const std::string& path);
  ~ByteFile();
  ByteFile(const ByteFile&) = delete;
  ByteFile& operator=(const ByteFile&) = delete;

  // Appends at most `count` bytes to `out`; fewer only when the file ends. Memory grows with what there is to read, not
  // with what was asked for. At the end of a gzip file its checksum has been compared.
  void read(std::size_t count, std::vector<uint8_t>& out);

 private:
  std::size_t read_plain(uint8_t* out, std::size_t count);
  std::size_t read_packed(uint8_t* out, std::size_t count);
  void refill();
  [[noreturn]] void fail_packed(const std::string& what) const;

  const std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::array<uint8_t, 65536> buffer_;
  z_stream stream_{};          // next_in and avail_in say what of buffer_ is left, for plain files too
  std::size_t file_read_ = 0;  // bytes taken from the file so far
  bool packed_ = false;
  bool member_done_ = false;  // a gzip file is one or more members end to end
};

}  // namespace ddprun::data
