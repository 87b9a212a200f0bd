#include "nccl_reduce.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ddprun::fake_nccl {
namespace {

// The upper half of a float32, rounded to nearest, ties to even.
struct BFloat16 {
  std::uint16_t bits;
  BFloat16() = default;
  explicit BFloat16(float value) {
    const auto all = std::bit_cast<std::uint32_t>(value);
    bits = value != value ? 0x7fc0 : static_cast<std::uint16_t>((all + 0x7fff + (all >> 16 & 1)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

template <class Element>
using Wide = std::conditional_t<sizeof(Element) == 2, float, Element>;

template <class Number>
Number combined(Number a, Number b, ncclRedOp_t op) {
  switch (op) {
    case ncclMin: return std::min(a, b);
    case ncclMax: return std::max(a, b);
    case ncclProd: return static_cast<Number>(a * b);
    default: return static_cast<Number>(a + b);
  }
}

template <class Element>
std::string reduced_as(const std::vector<std::string>& parts, std::size_t count, ncclRedOp_t op) {
  std::string result(count * sizeof(Element), '\0');
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = [&](const std::string& part) {
      Element element;
      std::memcpy(&element, part.data() + i * sizeof element, sizeof element);
      return static_cast<Wide<Element>>(element);
    };
    auto value = at(parts[0]);
    for (std::size_t rank = 1; rank < parts.size(); ++rank) value = combined(value, at(parts[rank]), op);
    if (op == ncclAvg) value = static_cast<Wide<Element>>(value / static_cast<Wide<Element>>(parts.size()));
    const auto element = static_cast<Element>(value);
    std::memcpy(result.data() + i * sizeof element, &element, sizeof element);
  }
  return result;
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: return 0;
  }
}

std::string reduced(const std::vector<std::string>& parts, std::size_t count, ncclDataType_t type, ncclRedOp_t op) {
  switch (type) {
    case ncclInt8: return reduced_as<std::int8_t>(parts, count, op);
    case ncclUint8: return reduced_as<std::uint8_t>(parts, count, op);
    case ncclInt32: return reduced_as<std::int32_t>(parts, count, op);
    case ncclUint32: return reduced_as<std::uint32_t>(parts, count, op);
    case ncclInt64: return reduced_as<std::int64_t>(parts, count, op);
    case ncclUint64: return reduced_as<std::uint64_t>(parts, count, op);
    case ncclFloat16: return reduced_as<_Float16>(parts, count, op);
    case ncclBfloat16: return reduced_as<BFloat16>(parts, count, op);
    case ncclFloat64: return reduced_as<double>(parts, count, op);
    default: return reduced_as<float>(parts, count, op);
  }
}

}  // namespace ddprun::fake_nccl
