#include <immintrin.h>

#include "reduction/loops.hpp"

namespace ddprun::reduction {
namespace {

// With full masks: GCC 12 warns that the intrinsics without a mask read an uninitialised register.
struct Avx512 {
  static constexpr std::size_t kBytes = 64;
  static constexpr const char* kName = "avx512";
  struct Float16Conversion {
    using Patterns = Vector<uint32_t, kBytes>;
    using Whole = Vector<uint64_t, kBytes>;
    using Half = Vector<uint64_t, kBytes / 2>;
    using Floats = Vector<float, kBytes>;
    static constexpr __mmask16 kAll = 0xffff;

    static Floats widen(Half patterns) { return _mm512_maskz_cvtph_ps(kAll, (__m256i)patterns); }
    static Half narrow(Floats values) { return (Half)_mm512_maskz_cvtps_ph(kAll, values, _MM_FROUND_TO_NEAREST_INT); }

    static Widened<kBytes> widen(Patterns patterns) {
      const auto all = (Whole)patterns;
      return {widen(__builtin_shufflevector(all, all, 0, 1, 2, 3)),
              widen(__builtin_shufflevector(all, all, 4, 5, 6, 7))};
    }
    static Patterns narrow(const Widened<kBytes>& values) {
      return (Patterns)__builtin_shufflevector(narrow(values.first), narrow(values.second), 0, 1, 2, 3, 4, 5, 6, 7);
    }
  };
};

}  // namespace

constinit const Table kAvx512 = table_of<Avx512>();

}  // namespace ddprun::reduction
