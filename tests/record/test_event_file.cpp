#include <doctest/doctest.h>

#include "record/event_file.hpp"

using namespace ddprun;

TEST_CASE("the checksum is CRC-32C, masked") {
  // RFC 3720, B.4: 32 bytes of zeros, and of ones.
  const auto masked = [](uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8U; };
  CHECK(record::masked_crc32c(std::string(32, '\0')) == masked(0x8A9136AA));
  CHECK(record::masked_crc32c(std::string(32, '\xff')) == masked(0x62A8AB43));
}

TEST_CASE("a value that is not finite adds nothing, and the name has no slash") {
  std::string bytes;
  record::Scalars(bytes, 1, 1).add("loss", record::kAbsent);
  CHECK(bytes.empty());
  record::Scalars(bytes, 1, 1).add("loss", 0.5);
  CHECK_FALSE(bytes.empty());
  CHECK(record::event_file_name(1763772608.9, "a/b") == "events.out.tfevents.1763772608.a-b");
}
