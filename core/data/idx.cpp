#include "data/idx.hpp"

#include "base/text.hpp"
#include "data/byte_file.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {
namespace {

constexpr uint32_t unsigned_bytes = 0x08;
constexpr std::size_t most_values = std::size_t{8} << 30;

uint32_t big_endian(std::span<const uint8_t> bytes, std::size_t offset) {
  uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | bytes[offset + i];
  return value;
}

}  // namespace

IdxHeader parse_idx_header(std::span<const uint8_t> bytes, int dimensions, const std::string& path) {
  IdxHeader header;
  header.bytes = idx_header_bytes(dimensions);
  if (bytes.empty()) fail_at(path, 0, "the file is empty");
  if (bytes.size() < header.bytes) {
    fail_at(path, bytes.size(), "the file ends inside its header of " + std::to_string(header.bytes) + " bytes");
  }
  const uint32_t magic = big_endian(bytes, 0);
  const uint32_t expected = unsigned_bytes << 8 | static_cast<uint32_t>(dimensions);
  if (magic != expected) {
    fail_at(path, 0,
            "magic 0x" + hex(magic, 8) + ": expected 0x" + hex(expected, 8) + ", an IDX file of unsigned bytes in " +
                std::to_string(dimensions) + (dimensions == 1 ? " dimension" : " dimensions"));
  }
  header.values = 1;
  for (std::size_t offset = 4; offset < header.bytes; offset += 4) {
    const std::size_t extent = big_endian(bytes, offset);
    if (extent == 0) fail_at(path, offset, "an extent of 0: the file holds no data");
    if (extent > most_values / header.values) {
      fail_at(path, offset, "extent " + std::to_string(extent) + " makes the file larger than the 8 GiB that are read");
    }
    header.values *= extent;
    header.extents.push_back(static_cast<int64_t>(extent));
  }
  return header;
}

void check_idx_values(std::span<const uint8_t> bytes, const IdxHeader& header, const std::string& what,
                      const std::string& path) {
  const std::size_t there = bytes.size() - header.bytes;
  const std::string expected = std::to_string(header.values) + " bytes of " + what + " expected, the file ";
  if (there < header.values) fail_at(path, header.bytes, expected + "ends after " + std::to_string(there));
  if (there > header.values) fail_at(path, header.bytes + header.values, expected + "goes on after them");
}

IdxFile read_idx(const std::string& path, int dimensions, const std::string& what) {
  IdxFile file;
  file.path = path;
  ByteFile source(path);
  source.read(idx_header_bytes(dimensions), file.bytes);
  file.header = parse_idx_header(file.bytes, dimensions, path);
  // Reading one byte more than expected detects a file that is too long, and makes zlib verify the checksum of a
  // compressed file.
  source.read(file.header.values + 1, file.bytes);
  check_idx_values(file.bytes, file.header, what, path);
  return file;
}

}  // namespace ddprun::data
