#include "run/memory.hpp"

#include <malloc.h>

#include <cstdlib>

namespace ddprun::run {
namespace {

constexpr int kLargestKept = 1 << 30;  // bytes of a block; beyond it, one that is not taken again would weigh too much
constexpr int kNeverTrim = -1;

}  // namespace

void keep_freed_memory() {
  if (std::getenv("MALLOC_MMAP_THRESHOLD_") != nullptr || std::getenv("MALLOC_TRIM_THRESHOLD_") != nullptr) return;
  mallopt(M_MMAP_THRESHOLD, kLargestKept);
  mallopt(M_TRIM_THRESHOLD, kNeverTrim);
}

}  // namespace ddprun::run
