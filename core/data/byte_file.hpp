// Files that are read sequentially as bytes, decompressed if they are gzip. Private to the module.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ddprun::data {

// The first regular file of these, each plain or with ".gz"; empty if none exists. Throws InvalidDataset("root") if
// there is only something else of such a name, or if it cannot be accessed.
std::string find_file(const std::vector<std::string>& plain);

// How to get the files of a data set that `ddprun data fetch` knows by this name.
std::string fetch_advice(const std::string& name, const std::string& root, const std::string& default_root);

// Throws InvalidDataset("root") unless `root` is a folder; with `advice` if nothing exists there.
void check_root(const std::string& root, const std::string& advice);

// Throws InvalidDataset("root"): what is wrong with the content of a file, and where.
[[noreturn]] void fail_at(const std::string& path, std::size_t offset, const std::string& what);

// Whether a file is gzip is seen from its first two bytes, not from its name. One thread. Throws InvalidDataset("root")
// with the path, and the offset in the packed file where packed data is damaged.
class ByteFile {
 public:
  explicit ByteFile(const std::string& path);

  // Appends at most `count` bytes to `out`; fewer only at the end of the file. Allocates memory for the data that
  // exists, not for `count`. At the end of a gzip file its checksum has been verified.
  void read(std::size_t count, std::vector<uint8_t>& out);

 private:
  const std::string path_;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;  // zlib reads a file that is not packed as it is
};

}  // namespace ddprun::data
