// Page-aligned memory for backends that have no wish of their own.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/error.hpp"

namespace ddprun::comm {

// At least `bytes` bytes, and at least one page. Throws Error(failure) when there is no memory.
inline std::shared_ptr<void> allocate_pages(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t pages = std::max<std::size_t>(1, bytes / kPage + (bytes % kPage != 0));
  void* const memory = std::aligned_alloc(kPage, pages * kPage);
  if (memory == nullptr) throw Error(ExitCode::failure, "out of memory: " + std::to_string(bytes) + " bytes");
  return {memory, std::free};
}

}  // namespace ddprun::comm
