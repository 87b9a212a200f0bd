// Causes page faults.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

namespace ddprun::testing {

// Allocates this number of new pages, writes to each, and frees them.
inline void touch_pages(std::size_t pages) {
  const std::size_t bytes = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("mmap failed");
  const bool small = madvise(memory, bytes, MADV_NOHUGEPAGE) == 0;
  std::memset(memory, 1, bytes);
  munmap(memory, bytes);
  if (!small) throw std::runtime_error("madvise failed");
}

}  // namespace ddprun::testing
