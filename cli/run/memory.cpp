#include "cli/run/memory.hpp"

#include <malloc.h>

#include <cstdlib>

namespace ddprun::run {
namespace {

constexpr int kLargestKept = 1 << 30;         // bytes; a larger block that is not reused would waste too much memory
constexpr int kLargestKeptBefore = 32 << 20;  // the maximum of older glibc versions
constexpr int kNeverTrim = -1;

}  // namespace

void keep_freed_memory() {
  if (std::getenv("MALLOC_MMAP_THRESHOLD_") != nullptr || std::getenv("MALLOC_TRIM_THRESHOLD_") != nullptr) return;
  // If malloc rejects M_MMAP_THRESHOLD, M_TRIM_THRESHOLD must not be set either: it would disable the dynamic
  // thresholds.
  if (mallopt(M_MMAP_THRESHOLD, kLargestKept) == 0 && mallopt(M_MMAP_THRESHOLD, kLargestKeptBefore) == 0) return;
  mallopt(M_TRIM_THRESHOLD, kNeverTrim);
}

}  // namespace ddprun::run
