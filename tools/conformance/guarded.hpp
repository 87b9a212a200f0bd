// Buffers of which the suite notices what is written or read around them.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace ddprun::conformance {

// A buffer between guard bytes that must not be written.
class Guarded {
 public:
  // Starts `shift` bytes after a cache line: a buffer need only be aligned to its element, and backends with vector
  // instructions must not assume more. Every byte starts as poison, so that an unwritten byte is detected.
  explicit Guarded(std::size_t bytes, std::size_t shift = 0)
      : memory_(bytes + 2 * kGuard + kLine, kPattern), bytes_(bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    begin_ = (kLine - address % kLine) % kLine + kGuard + shift;
  }

  unsigned char* data() { return memory_.data() + begin_; }
  std::size_t bytes() const { return bytes_; }

  // The buffer with its guards.
  unsigned char* whole() { return memory_.data(); }
  std::size_t whole_bytes() const { return memory_.size(); }

  // A copy of the content, to compare with later.
  std::vector<unsigned char> copy() const { return {first(), first() + bytes_}; }
  bool holds(const std::vector<unsigned char>& content) const {
    return std::equal(content.begin(), content.end(), first(), first() + bytes_);
  }

  // True if nothing has been written around the buffer.
  bool intact() const {
    const auto untouched = [](unsigned char byte) { return byte == kPattern; };
    return std::all_of(memory_.data(), first(), untouched) &&
           std::all_of(first() + bytes_, memory_.data() + memory_.size(), untouched);
  }

 private:
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kGuard = 256;  // shift is less
  static constexpr unsigned char kPattern = 0xC3;

  const unsigned char* first() const { return memory_.data() + begin_; }

  std::vector<unsigned char> memory_;
  std::size_t bytes_;
  std::size_t begin_ = 0;
};

// Memory that ends where a page ends, with no memory behind it: who reads or writes further is killed by SIGSEGV.
class PageEnd {
 public:
  explicit PageEnd(std::size_t bytes)
      : pages_((bytes + page() - 1) / page() * page()),
        whole_(::mmap(nullptr, pages_ + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        bytes_(bytes) {
    if (whole_ == MAP_FAILED) throw std::bad_alloc();
    ::mprotect(static_cast<unsigned char*>(whole_) + pages_, page(), PROT_NONE);
  }
  ~PageEnd() { ::munmap(whole_, pages_ + page()); }
  PageEnd(const PageEnd&) = delete;
  PageEnd& operator=(const PageEnd&) = delete;

  unsigned char* data() const { return static_cast<unsigned char*>(whole_) + pages_ - bytes_; }
  // From now on, who writes to it is killed too.
  void forbid_writing() const { ::mprotect(whole_, pages_, PROT_READ); }

 private:
  static std::size_t page() { return static_cast<std::size_t>(::getpagesize()); }

  const std::size_t pages_;
  void* const whole_;
  const std::size_t bytes_;
};

}  // namespace ddprun::conformance
