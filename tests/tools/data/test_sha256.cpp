// The examples of FIPS 180-4, as NIST publishes them.
#include <doctest/doctest.h>

#include "tools/data/some_file.hpp"

using ddprun::testing::sha256_of;

TEST_CASE("SHA-256 of the published examples") {
  CHECK(sha256_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_of(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
