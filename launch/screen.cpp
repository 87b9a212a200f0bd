#include "launch/screen.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"

namespace ddprun::launch {
namespace {

constexpr std::chrono::milliseconds kPatience{500};  // wait for the rest of rank 0's line
constexpr std::size_t kMostHeld = 16 << 20;          // bytes of lines that wait for it
constexpr std::size_t kMostQueued = 1 << 20;
constexpr std::size_t kChunk = 4096;  // PIPE_BUF: how much a pipe accepts at least when poll() reports it as writable

}  // namespace

void Screen::pass(std::string_view bytes) {
  const std::size_t head = bytes.rfind('\n') + 1;  // 0 if there is none
  if (head > 0) {
    const std::size_t begin = unfinished_ && !redrawn_ ? bytes.find('\n') + 1 : 0;
    queue_ += bytes.substr(0, begin);
    if (begin < head) queue_ += wrapped_lines(bytes.substr(begin, head - 1 - begin), columns_);
    unfinished_ = redrawn_ = false;
    release();
    bytes.remove_prefix(head);
  }
  if (bytes.empty()) return;
  queue_ += bytes;
  unfinished_ = true;
  redrawn_ = redrawn_ || bytes.find('\r') != std::string_view::npos;
  if (redrawn_ && !held_.empty()) release();
}

void Screen::line(std::string_view text) {
  held_ += wrapped_lines(text, columns_);
  if (!unfinished_ || redrawn_ || held_.size() > kMostHeld) {
    release();
  } else if (!due_) {
    due_ = Clock::now() + kPatience;
  }
}

void Screen::last_line(std::string_view text) {
  held_ += wrapped_lines(text, columns_);
  release();
}

void Screen::release_due(Clock::time_point now) {
  if (due_ && now >= *due_) release();
}

bool Screen::full() const {
  return queue_.size() - written_ > kMostQueued;
}

void Screen::release() {
  due_.reset();
  if (held_.empty()) return;
  end_unfinished_line();
  queue_ += held_;
  held_.clear();
}

void Screen::end_unfinished_line() {
  if (unfinished_) queue_ += redrawn_ && columns_ > 0 ? "\r\x1b[K" : "\n";
  unfinished_ = redrawn_ = false;
}

void Screen::write_some() {
  pollfd entry{fd_, POLLOUT, 0};
  while (pending() && ::poll(&entry, 1, 0) > 0 && write_chunk(kChunk)) {
  }
}

void Screen::flush() {
  release();
  pollfd entry{fd_, POLLOUT, 0};
  while (pending()) {
    if (!write_chunk(queue_.size())) ::poll(&entry, 1, -1);  // another process made the descriptor non-blocking
  }
}

// False if nothing can be written now.
bool Screen::write_chunk(std::size_t most) {
  if (broken_ == 0) {
    const ssize_t got = ::write(fd_, queue_.data() + written_, std::min(most, queue_.size() - written_));
    if (got < 0 && errno == EINTR) return true;
    if (got < 0 && errno == EAGAIN) return false;
    if (got < 0) broken_ = errno;
    if (got > 0) written_ += static_cast<std::size_t>(got);
  }
  if (broken_ != 0) written_ = queue_.size();
  if (written_ > kMostQueued || written_ == queue_.size()) {
    queue_.erase(0, written_);
    written_ = 0;
  }
  return true;
}

}  // namespace ddprun::launch
