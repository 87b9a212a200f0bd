// The loops of plugins/lib/reduction for each instruction set: all give the same bits, wherever the vectors are.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"
#include "reduction/tables.hpp"

namespace {

using namespace ddprun::reduction;

using Bytes = std::vector<uint8_t>;
constexpr std::size_t kGuard = 64;  // bytes after each result that must not change

template <class Unsigned>
bool is_nan(const uint8_t* element, int exponent_bits, int fraction_bits) {
  Unsigned bits;
  std::memcpy(&bits, element, sizeof bits);
  const Unsigned magnitude = bits & static_cast<Unsigned>(~(Unsigned{1} << (exponent_bits + fraction_bits)));
  return magnitude > ((Unsigned{1} << exponent_bits) - 1) << fraction_bits;
}

bool is_nan(int32_t dtype, const uint8_t* element) {
  switch (dtype) {
    case DDPRUN_FLOAT16: return is_nan<uint16_t>(element, 5, 10);
    case DDPRUN_BFLOAT16: return is_nan<uint16_t>(element, 8, 7);
    case DDPRUN_FLOAT32: return is_nan<uint32_t>(element, 8, 23);
    case DDPRUN_FLOAT64: return is_nan<uint64_t>(element, 11, 52);
    default: return false;
  }
}

std::size_t size_of(int32_t dtype) {
  return ddprun::size_of(static_cast<ddprun::DType>(dtype));
}

// The index of the first element that differs, or -1. All NaNs count as equal.
int64_t first_difference(int32_t dtype, const Bytes& a, const Bytes& b, std::size_t begin, std::size_t count) {
  const std::size_t size = size_of(dtype);
  for (std::size_t i = 0; i < count; ++i) {
    const uint8_t *x = a.data() + begin + i * size, *y = b.data() + begin + i * size;
    if (std::memcmp(x, y, size) != 0 && !(is_nan(dtype, x) && is_nan(dtype, y))) return static_cast<int64_t>(i);
  }
  return -1;
}

// Any pattern, and many whose exponent is all zeros or ones or close to another's: denormals, infinities, NaNs, ties.
Bytes numbers(std::mt19937& random, int32_t dtype, std::size_t count) {
  const std::size_t size = size_of(dtype);
  const uint8_t tops[] = {0x00, 0x80, 0x7f, 0xff, 0x7c, 0xfc, 0x3c, 0x3f, 0xbf, 0x40};
  Bytes bytes(count * size);
  for (auto& byte : bytes) byte = static_cast<uint8_t>(random());
  for (std::size_t i = 0; i < count; ++i) {
    uint8_t* const element = bytes.data() + i * size;
    const auto kind = random() % 4;
    if (kind < 3) element[size - 1] = tops[random() % std::size(tops)];
    if (kind == 0) std::memset(element, 0, size - 1);
    if (kind == 1 && size > 1) element[size - 2] &= 0xf0;
  }
  return bytes;
}

Bytes at_offset(const Bytes& content, std::size_t offset) {
  Bytes bytes(offset + content.size() + kGuard, 0xa5);
  std::copy(content.begin(), content.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  return bytes;
}

struct Case {
  int32_t dtype;
  int op, from_count, to_count;
  std::size_t count, offset;
};

// Results of one table, each with its offset before it and the guard behind it.
std::vector<Bytes> run(const Table& table, const Case& c, const std::vector<Bytes>& sources) {
  std::vector<Bytes> results(static_cast<std::size_t>(c.to_count),
                             at_offset(Bytes(c.count * size_of(c.dtype)), c.offset));
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const Bytes& source : sources) from.push_back(source.data() + c.offset);
  for (Bytes& result : results) to.push_back(result.data() + c.offset);
  table.of_dtype[c.dtype].reduce_all[c.op](to.data(), c.to_count, from.data(), c.from_count, c.count);
  return results;
}

void check_equal(const Table& table, const Case& c, const std::vector<Bytes>& expected,
                 const std::vector<Bytes>& results) {
  const std::string name = table.name;
  CAPTURE(name);
  CAPTURE(c.dtype);
  CAPTURE(c.op);
  CAPTURE(c.count);
  CAPTURE(c.from_count);
  for (std::size_t t = 0; t < results.size(); ++t) {
    CHECK(first_difference(c.dtype, expected[0], results[t], c.offset, c.count) == -1);
    const uint8_t* const end = results[t].data() + results[t].size() - kGuard;
    for (std::size_t i = 0; i < kGuard; ++i) REQUIRE(end[i] == 0xa5);
  }
}

template <class Body>
void for_each_case(Body&& body) {
  std::mt19937 random(1);
  for (int32_t dtype = 0; dtype < DDPRUN_DTYPE_COUNT; ++dtype) {
    for (int op = 0; op < DDPRUN_OP_COUNT; ++op) {
      for (const std::size_t count : {0, 1, 2, 3, 7, 8, 15, 17, 31, 33, 63, 65, 127, 255, 257, 300, 1031}) {
        const auto from_count = static_cast<int>(1 + random() % 5), to_count = static_cast<int>(1 + random() % 4);
        body(Case{dtype, op, from_count, to_count, count, random() % 33}, random);
      }
    }
  }
}

std::vector<Bytes> sources_of(const Case& c, std::mt19937& random) {
  std::vector<Bytes> sources;
  for (int f = 0; f < c.from_count; ++f) sources.push_back(at_offset(numbers(random, c.dtype, c.count), c.offset));
  return sources;
}

TEST_CASE("every instruction set gives the bits of the plain loops, at any address and count") {
  MESSAGE("tables that this processor runs: " << usable_tables().size()
                                              << ", fastest: " << std::string(usable_tables()[0]->name));
  for_each_case([](const Case& c, std::mt19937& random) {
    const auto sources = sources_of(c, random);
    const auto expected = run(kPlain, c, sources);
    for (const Table* table : usable_tables()) check_equal(*table, c, expected, run(*table, c, sources));
  });
}

TEST_CASE("reducing two vectors at a time gives what reduce_all gives for two") {
  for_each_case([](Case c, std::mt19937& random) {
    c.from_count = 2, c.to_count = 1;
    const auto sources = sources_of(c, random);
    for (const Table* table : usable_tables()) {
      const auto expected = run(*table, c, sources);
      auto result = at_offset(Bytes(c.count * size_of(c.dtype)), c.offset);
      table->of_dtype[c.dtype].reduce[c.op](result.data() + c.offset, sources[0].data() + c.offset,
                                            sources[1].data() + c.offset, c.count);
      check_equal(*table, c, expected, {result});
    }
  });
}

TEST_CASE("results may overwrite the sources") {
  for_each_case([](const Case& c, std::mt19937& random) {
    const auto sources = sources_of(c, random);
    const auto expected = run(kPlain, c, sources);
    for (const Table* table : usable_tables()) {
      auto in_place = sources;
      std::vector<const void*> from;
      std::vector<void*> to;
      for (Bytes& vector : in_place) from.push_back(vector.data() + c.offset), to.push_back(vector.data() + c.offset);
      table->of_dtype[c.dtype].reduce_all[c.op](to.data(), c.from_count, from.data(), c.from_count, c.count);
      check_equal(*table, c, expected, in_place);
    }
  });
}

TEST_CASE("every instruction set divides as the plain loops do, and does not change integers") {
  for_each_case([](const Case& c, std::mt19937& random) {
    const auto source = at_offset(numbers(random, c.dtype, c.count), c.offset);
    for (const Table* table : usable_tables()) {
      const Divide divide = table->of_dtype[c.dtype].divide;
      REQUIRE((divide != nullptr) == (c.dtype <= DDPRUN_FLOAT64));
      if (divide == nullptr) continue;
      auto expected = source, result = source;
      kPlain.of_dtype[c.dtype].divide(expected.data() + c.offset, c.count, c.from_count);
      divide(result.data() + c.offset, c.count, c.from_count);
      check_equal(*table, c, {expected}, {result});
    }
  });
}

}  // namespace
