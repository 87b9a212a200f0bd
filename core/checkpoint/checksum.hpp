// The checksums in the metadata of our safetensors files. Internal to this module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ddprun::checkpoint {

inline const std::string kHeaderChecksumKey = "ddprun.crc32";
inline const std::string kTensorChecksumPrefix = kHeaderChecksumKey + ".";  // followed by the tensor's name
// placeholder in the header while its checksum is computed
inline constexpr std::string_view kNoChecksum = "00000000";

// CRC-32 as zlib computes it.
uint32_t crc32_of(const void* data, size_t bytes);
// Eight lower-case digits.
std::string hex(uint32_t value);

// Replaces the placeholder in the header by the checksum of the header with the placeholder.
void seal(std::string& header);
// Whether the header has a checksum of itself, and whether it is right.
enum class Seal { none, right, wrong };
Seal check_seal(std::string header);

}  // namespace ddprun::checkpoint
