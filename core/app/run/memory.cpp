#include "app/run/memory.hpp"

#include <malloc.h>

#include <cstdlib>

namespace ddprun::run {
namespace {

constexpr int kLargestKept = 1 << 30;  // bytes of a block; beyond it, one that is not taken again would weigh too much
constexpr int kLargestKeptBefore = 32 << 20;  // the most that older versions of glibc take
constexpr int kNeverTrim = -1;

}  // namespace

void keep_freed_memory() {
  if (std::getenv("MALLOC_MMAP_THRESHOLD_") != nullptr || std::getenv("MALLOC_TRIM_THRESHOLD_") != nullptr) return;
  // A malloc that refuses the first must not be told the second: it would stop adapting its thresholds to what it sees.
  if (mallopt(M_MMAP_THRESHOLD, kLargestKept) == 0 && mallopt(M_MMAP_THRESHOLD, kLargestKeptBefore) == 0) return;
  mallopt(M_TRIM_THRESHOLD, kNeverTrim);
}

}  // namespace ddprun::run
