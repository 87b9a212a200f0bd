#include "base/sha256.hpp"

#include <doctest/doctest.h>

namespace ddprun {
namespace {

// The values are those of FIPS 180-4's examples.
TEST_CASE("a SHA-256 is that of all bytes, in whichever pieces they come") {
  Sha256 whole, pieces;
  whole.add("abc", 3);
  for (const char* piece : {"a", "b", "c"}) pieces.add(piece, 1);
  CHECK(whole.hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(pieces.hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(Sha256().hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace ddprun
