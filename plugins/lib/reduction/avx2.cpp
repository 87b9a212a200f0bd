#include <immintrin.h>

#include "reduction/loops.hpp"

namespace ddprun::reduction {
namespace {

struct Avx2 {
  static constexpr std::size_t kBytes = 32;
  static constexpr const char* kName = "avx2";
  struct Float16Conversion {
    using Patterns = Vector<uint32_t, kBytes>;
    using Whole = Vector<uint64_t, kBytes>;
    using Half = Vector<uint64_t, kBytes / 2>;
    using Floats = Vector<float, kBytes>;

    static Floats widen(Half patterns) { return _mm256_cvtph_ps((__m128i)patterns); }
    static Half narrow(Floats values) { return (Half)_mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT); }

    static Widened<kBytes> widen(Patterns patterns) {
      const auto all = (Whole)patterns;
      return {widen(__builtin_shufflevector(all, all, 0, 1)), widen(__builtin_shufflevector(all, all, 2, 3))};
    }
    static Patterns narrow(const Widened<kBytes>& values) {
      return (Patterns)__builtin_shufflevector(narrow(values.first), narrow(values.second), 0, 1, 2, 3);
    }
  };
};

}  // namespace

constinit const Table kAvx2 = table_of<Avx2>();

}  // namespace ddprun::reduction
