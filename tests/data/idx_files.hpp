// Small IDX files for tests, valid and invalid, plain and packed.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "testing/temp_dir.hpp"

namespace ddprun::testing {

inline std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

// A file whose header has `extents`, with any values.
inline std::string idx(const std::vector<uint32_t>& extents, const std::string& values) {
  std::string bytes = big_endian(0x0800 + static_cast<uint32_t>(extents.size()));
  for (const uint32_t extent : extents) bytes += big_endian(extent);
  return bytes + values;
}

// 0, 1, 2, ... as bytes.
inline std::string ramp(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(i % 256);
  return bytes;
}

inline std::string gzip(const std::string& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("zlib");
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int status = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw std::runtime_error("zlib");
  return packed;
}

inline const char* const train_images = "train-images-idx3-ubyte";
inline const char* const train_labels = "train-labels-idx1-ubyte";
inline const char* const test_images = "t10k-images-idx3-ubyte";
inline const char* const test_labels = "t10k-labels-idx1-ubyte";

// The four files of a data set: 5 training and 2 test images of 2 rows and 3 columns, labels from 0 to 4.
class IdxFolder : public TempDir {
 public:
  IdxFolder() {
    write(train_images, idx({5, 2, 3}, ramp(30)));
    write(train_labels, idx({5}, ramp(5)));
    write(test_images, idx({2, 2, 3}, ramp(12)));
    write(test_labels, idx({2}, ramp(2)));
  }
  std::string root() const { return path().string(); }
  std::string file(const std::string& name) const { return (path() / name).string(); }
};

}  // namespace ddprun::testing
