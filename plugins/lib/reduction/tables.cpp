#include "reduction/tables.hpp"

namespace ddprun::reduction {
namespace {

#if defined(__x86_64__)
constexpr const Table* kTables[] = {&kAvx512, &kAvx2, &kPlain};

std::size_t first_usable() {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? 0 : avx2 ? 1 : 2;
}
#else
constexpr const Table* kTables[] = {&kPlain};

std::size_t first_usable() {
  return 0;
}
#endif

}  // namespace

std::span<const Table* const> usable_tables() noexcept {
  return std::span(kTables).subspan(first_usable());
}

}  // namespace ddprun::reduction
