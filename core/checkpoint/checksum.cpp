#include "checkpoint/internal.hpp"

#include <zlib.h>

#include "base/text.hpp"

namespace ddprun::checkpoint {
namespace {

// The position of the header's own checksum. The pattern cannot occur inside a JSON string, because its quotes would be
// escaped there.
size_t find_seal(const std::string& header) {
  const std::string pattern = "\"" + kHeaderChecksumKey + "\":\"";
  const size_t at = header.find(pattern);
  if (at == std::string::npos || at + pattern.size() + kNoChecksum.size() > header.size()) return std::string::npos;
  return at + pattern.size();
}

}  // namespace

std::string checksum_of(const void* data, size_t bytes) {
  return hex(::crc32_z(0, static_cast<const Bytef*>(data), bytes), static_cast<int>(kNoChecksum.size()));
}

void seal(std::string& header) {
  const std::string digits = checksum_of(header.data(), header.size());
  header.replace(find_seal(header), digits.size(), digits);
}

Seal check_seal(std::string header) {
  const size_t at = find_seal(header);
  if (at == std::string::npos) return Seal::none;
  const std::string digits = header.substr(at, kNoChecksum.size());
  header.replace(at, kNoChecksum.size(), kNoChecksum);
  return checksum_of(header.data(), header.size()) == digits ? Seal::right : Seal::wrong;
}

}  // namespace ddprun::checkpoint
