// The IDX reader on random bytes.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "data/datasets.hpp"
#include "data/idx.hpp"
#include "data/idx_files.hpp"

using namespace ddprun;
using namespace ddprun::data;
using namespace ddprun::testing;

namespace {

// True if the bytes were read; false if they were refused with the right error.
bool readable(const std::vector<uint8_t>& bytes, int dimensions) {
  try {
    const IdxHeader header = parse_idx_header(bytes, dimensions, "file");
    check_idx_values(bytes, header, "values", "file");
    RC_ASSERT(header.bytes + header.values == bytes.size());
    return true;
  } catch (const InvalidDataset& error) {
    RC_ASSERT(std::string(error.what()).starts_with("file: offset "));
    return false;
  }
}

std::vector<uint8_t> to_bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

}  // namespace

TEST_CASE("random bytes are read or refused") {
  CHECK(rc::check([] {
    const auto bytes = *rc::gen::arbitrary<std::vector<uint8_t>>();
    readable(bytes, *rc::gen::inRange(1, 5));
  }));
}

TEST_CASE("random extents after a valid magic are read if and only if the values match them") {
  CHECK(rc::check([] {
    const auto extents = *rc::gen::container<std::vector<uint32_t>>(
        3, rc::gen::oneOf(rc::gen::inRange<uint32_t>(0, 5), rc::gen::arbitrary<uint32_t>(),
                          rc::gen::element<uint32_t>(0x7fffffff, 0x80000000, 0xffffffff)));
    const auto count = *rc::gen::inRange<std::size_t>(0, 65);
    __uint128_t product = 1;
    for (const uint32_t extent : extents) product *= extent;
    RC_ASSERT(readable(to_bytes(idx(extents, ramp(count))), 3) == (product > 0 && product == count));
  }));
}

TEST_CASE("a small packed file with a flipped byte is read or refused") {
  const std::string good = gzip(idx({5, 2, 3}, ramp(30)));
  const TempDir folder;
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] ^= 0x55;
    const auto path = folder.write("file", bytes);
    std::string outcome;
    try {
      outcome = read_idx(path, 3, "values").values().size() == 30 ? "read" : "read wrongly";
    } catch (const InvalidDataset& error) {
      outcome = error.what();
    }
    CHECK((outcome == "read" || outcome.starts_with(path + ": offset ")));
  }
}
