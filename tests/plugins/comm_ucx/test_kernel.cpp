// The kernel, as the fake driver runs it, against the processor's reductions.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "plugins/comm_ucx/gpu_space.hpp"
#include "plugins/comm_ucx/memory_space.hpp"
#include "plugins/comm_ucx/on_fake_gpu.hpp"
#include "reduction/float16.hpp"

using ddprun::DType;
using ddprun::Memory;
using ddprun::Op;

using namespace ddprun;
using namespace ddprun::testing;
using namespace ddprun::ucx_backend;

namespace {

using Bytes = std::vector<std::byte>;

template <class T, class Float>
bool are_both_nan(const std::byte* a, const std::byte* b, Float to_float) {
  T first, second;
  std::memcpy(&first, a, sizeof first);
  std::memcpy(&second, b, sizeof second);
  return std::isnan(to_float(first)) && std::isnan(to_float(second));
}

// Bit for bit, except for the bits of a NaN.
bool are_equal(DType dtype, const std::byte* a, const std::byte* b) {
  using namespace reduction;
  if (std::memcmp(a, b, size_of(dtype)) == 0) return true;
  switch (dtype) {
    case DType::float16: return are_both_nan<Float16>(a, b, [](Float16 one) { return to_float(one); });
    case DType::bfloat16: return are_both_nan<BFloat16>(a, b, [](BFloat16 one) { return to_float(one); });
    case DType::float32: return are_both_nan<float>(a, b, [](float one) { return one; });
    case DType::float64: return are_both_nan<double>(a, b, [](double one) { return one; });
    default: return false;
  }
}

void check_equal(DType dtype, const Bytes& gpu, const Bytes& host) {
  for (std::size_t i = 0; i < host.size(); i += size_of(dtype)) RC_ASSERT(are_equal(dtype, &gpu[i], &host[i]));
}

// Memory of the fake GPU, which is host memory.
class OnGpuVector {
 public:
  explicit OnGpuVector(const Bytes& content) : bytes_(content.size()) {
    check(driver().allocate(&address_, bytes_ + 1), "memory");
    std::copy(content.begin(), content.end(), data());
  }
  ~OnGpuVector() { driver().free(address_); }
  OnGpuVector(const OnGpuVector&) = delete;
  OnGpuVector& operator=(const OnGpuVector&) = delete;
  std::byte* data() { return reinterpret_cast<std::byte*>(address_); }
  Bytes content() { return {data(), data() + bytes_}; }

 private:
  CudaAddress address_ = 0;
  std::size_t bytes_;
};

Bytes random_bytes(std::size_t count) {
  const auto bytes = *rc::gen::container<std::vector<uint8_t>>(count, rc::gen::arbitrary<uint8_t>());
  Bytes made(count);
  if (count > 0) std::memcpy(made.data(), bytes.data(), count);
  return made;
}

}  // namespace

TEST_CASE("the kernel gives the processor's bits, for every dtype and op, in place or not") {
  AloneOnGpu alone;
  HostSpace host(true);
  for (std::size_t dtype_number = 0; dtype_number < kDTypeCount; ++dtype_number) {
    const auto dtype = static_cast<DType>(dtype_number);
    for (std::size_t op_number = 0; op_number < kOpCount; ++op_number) {
      const auto op = static_cast<Op>(op_number);
      if (op == Op::avg && !is_floating(dtype)) continue;
      CAPTURE(dtype);
      CAPTURE(op);
      CHECK(rc::check([&] {
        const auto count = *rc::gen::inRange<std::size_t>(0, 700);
        const Bytes a = random_bytes(count * size_of(dtype)), b = random_bytes(count * size_of(dtype));
        const int ranks = op == Op::avg ? *rc::gen::inRange(2, 9) : 1;
        const int place = *rc::gen::inRange(0, 3);  // of the result: separate, a's, b's
        OnGpuVector first(a), second(b), third(a);
        OnGpuVector& result = place == 0 ? third : place == 1 ? first : second;
        alone.space().reduce({dtype, op, ranks}, result.data(), first.data(), second.data(), count);
        Bytes expected(a.size());
        host.reduce({dtype, op, ranks}, expected.data(), a.data(), b.data(), count);
        check_equal(dtype, result.content(), expected);
        if (place == 0) RC_ASSERT(first.content() == a && second.content() == b);
      }));
    }
  }
}

TEST_CASE("all pairs of 16-bit patterns (NaNs, infinities and denormals too) give the processor's results") {
  AloneOnGpu alone;
  HostSpace host(true);
  constexpr std::size_t kCount = 65536;
  std::vector<uint16_t> every(kCount), other(kCount);
  for (std::size_t i = 0; i < kCount; ++i) every[i] = static_cast<uint16_t>(i);
  const auto bytes_of = [](const std::vector<uint16_t>& patterns) {
    Bytes bytes(2 * patterns.size());
    std::memcpy(bytes.data(), patterns.data(), bytes.size());
    return bytes;
  };
  const Bytes a = bytes_of(every);
  for (const int with : {0x0001, 0x03ff, 0x3c00, 0x7bff, 0x7c00, 0x7f80, 0x7fc0, 0x8001, 0xbc00, 0xfc00, 0xff80}) {
    std::fill(other.begin(), other.end(), static_cast<uint16_t>(with));
    const Bytes b = bytes_of(other);
    OnGpuVector first(a), second(b), result(a);
    for (const DType dtype : {DType::float16, DType::bfloat16}) {
      for (std::size_t op_number = 0; op_number < kOpCount; ++op_number) {
        const auto op = static_cast<Op>(op_number);
        const Reduction how = {dtype, op, op == Op::avg ? 3 : 1};
        alone.space().reduce(how, result.data(), first.data(), second.data(), kCount);
        Bytes expected(a.size());
        host.reduce(how, expected.data(), a.data(), b.data(), kCount);
        const Bytes got = result.content();
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < expected.size(); i += 2) wrong += !are_equal(dtype, &got[i], &expected[i]);
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("a vector with more elements than the grid has threads is reduced completely, and copied") {
  AloneOnGpu alone;
  constexpr std::size_t kCount = 3 * 1024 * 256 + 17;
  const std::vector<int32_t> ones(kCount, 1);
  Bytes bytes(4 * kCount);
  std::memcpy(bytes.data(), ones.data(), bytes.size());
  OnGpuVector vector(bytes), copy(Bytes(bytes.size()));
  alone.space().reduce({DType::int32, Op::sum, 1}, vector.data(), vector.data(), vector.data(), kCount);
  alone.space().copy(copy.data(), vector.data(), bytes.size());
  std::vector<int32_t> result(kCount);
  std::memcpy(result.data(), copy.data(), bytes.size());
  CHECK(result == std::vector<int32_t>(kCount, 2));
}
