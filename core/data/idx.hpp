// IDX, the file format of MNIST (LeCun, Cortes and Burges): two zero bytes, the element type, the number of dimensions,
// each extent as 32 bits big-endian, then the values. Private to the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ddprun::data {

struct IdxHeader {
  std::vector<int64_t> extents;  // samples first: {60000, 28, 28}
  std::size_t bytes = 0;         // of the header itself
  std::size_t values = 0;        // the product of the extents; a value is one byte
};

// The length of the header for this number of dimensions.
constexpr std::size_t idx_header_bytes(int dimensions) {
  return 4 + 4 * static_cast<std::size_t>(dimensions);
}

// Parses the header at the start of `bytes`: unsigned bytes with the given number of dimensions, none of size 0. A pure
// function, safe for any bytes. Throws InvalidDataset("root") that begins with `path` and the offset.
IdxHeader parse_idx_header(std::span<const uint8_t> bytes, int dimensions, const std::string& path);

// A whole checked file: header and values.
struct IdxFile {
  std::string path;
  IdxHeader header;
  std::vector<uint8_t> bytes;
  std::span<const uint8_t> values() const { return std::span(bytes).subspan(header.bytes); }
};

// Checks that `bytes`, a whole file, has exactly the size that its header gives. `what` names the values ("pixels"). A
// pure function, safe for any bytes. Throws as above.
void check_idx_values(std::span<const uint8_t> bytes, const IdxHeader& header, const std::string& what,
                      const std::string& path);

// Reads a file, plain or compressed. Throws as above.
IdxFile read_idx(const std::string& path, int dimensions, const std::string& what);

}  // namespace ddprun::data
