// The checksums that our safetensors files carry in their metadata. Internal to this module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ddprun::checkpoint {

inline constexpr std::string_view kChecksumPrefix = "ddprun.crc32";
inline const std::string kHeaderChecksumKey = "ddprun.crc32";
inline const std::string kTensorChecksumPrefix = "ddprun.crc32.";  // and the tensor's name
inline constexpr std::string_view kNoChecksum = "00000000";        // stands in the header while its own is computed

// CRC-32 as zlib computes it.
uint32_t crc32_of(const void* data, size_t bytes);
// Eight lower-case digits.
std::string hex(uint32_t value);

// Replaces the zeros of the header's own checksum by the checksum of the header with the zeros in it.
void seal(std::string& header);
// Whether the header carries a checksum of itself, and whether that is right.
enum class Seal { none, right, wrong };
Seal check_seal(std::string header);

}  // namespace ddprun::checkpoint
