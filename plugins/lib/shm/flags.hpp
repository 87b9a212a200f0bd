// One word of shared memory that a rank increments and others wait for. Numbers wrap around; a writer is never 2^31
// ahead of a reader.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "ddprun/plugin/futex.hpp"
#include "shm/wait.hpp"

namespace ddprun::shm {

// A cache line and its neighbour, which processors fetch together.
inline constexpr std::size_t kLine = 128;

class Word {
 public:
  bool has_reached(uint32_t value) const noexcept {
    return static_cast<int32_t>(number_.load(std::memory_order_acquire) - value) >= 0;
  }

  // A rank that sees `value` also sees everything that this rank wrote before. `sleepers`: of the same writer.
  // Sequentially consistent, as in wait(): either the sleeper sees the number, or this rank sees the sleeper.
  void post(uint32_t value, const std::atomic<uint32_t>& sleepers) noexcept {
    number_.store(value, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) != 0) futex_wake_all(number_);
  }

  // `writer`: the rank that posts here.
  void wait(uint32_t value, std::atomic<uint32_t>& sleepers, int writer, Waiter& waiter) {
    waiter.until([&] { return has_reached(value); }, writer,
                 [&](std::chrono::nanoseconds longest) { sleep(value, sleepers, longest); });
  }

 private:
  void sleep(uint32_t value, std::atomic<uint32_t>& sleepers, std::chrono::nanoseconds longest) noexcept {
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t seen = number_.load(std::memory_order_seq_cst);
    if (static_cast<int32_t>(seen - value) < 0) futex_wait(number_, seen, longest);
    sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }

  std::atomic<uint32_t> number_{0};
};

}  // namespace ddprun::shm
