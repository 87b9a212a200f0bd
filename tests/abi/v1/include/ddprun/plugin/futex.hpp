// ddprun/plugin/futex.hpp: waiting in the kernel for a word of memory that processes share. Linux only.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace ddprun {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);

// Between processes, hence not FUTEX_PRIVATE. `longest` is below a second. Returns early on a wake, a signal, or when
// the word is no longer `seen`.
inline void futex_wait(std::atomic<uint32_t>& word, uint32_t seen, std::chrono::nanoseconds longest) noexcept {
  const timespec time{.tv_sec = 0, .tv_nsec = static_cast<long>(longest.count())};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

inline void futex_wake_all(std::atomic<uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace ddprun
