// One output stream of the launcher, shared by lines of all ranks without cutting any of them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace ddprun::launch {

// Takes rank 0's bytes as they are and everybody else's as whole lines. Keeps what the reader does not take yet; never
// blocks except in flush(). One thread.
class Screen {
 public:
  using Clock = std::chrono::steady_clock;

  // `fd` stays the caller's. On a terminal a line that is being redrawn (a progress bar) is wiped before another line;
  // elsewhere it is ended.
  Screen(int fd, bool is_terminal) : fd_(fd), is_terminal_(is_terminal) {}

  // Rank 0's bytes, as they are.
  void pass(std::string_view bytes);

  // A whole line, without its line break. While rank 0 is in the middle of a line of its own this waits a moment for
  // the rest of it; a line that is being redrawn is not waited for.
  void line(std::string_view text);

  // A line that comes after all before it and at once: the launcher's own.
  void last_line(std::string_view text);

  // When lines that wait for the end of rank 0's line are to go out nevertheless; and that moment.
  std::optional<Clock::time_point> due() const { return due_; }
  void release_due(Clock::time_point now);

  // For a poll loop: whether there is something to write, and writing as much as goes without blocking.
  int fd() const { return fd_; }
  bool pending() const { return written_ < queue_.size(); }
  bool full() const;  // the reader is far behind: take nothing more
  void write_some();

  // So many lines wait for the end of rank 0's that no more should be taken but rank 0's bytes.
  bool crowded() const;

  // Writes all, the lines that wait too, however long the reader takes.
  void flush();

  // The reader has gone (EPIPE) or the disk is full: what comes from now on is dropped. The reason, else 0.
  int broken() const { return broken_; }

 private:
  void release();
  void end_unfinished_line();
  bool write_chunk(std::size_t most);

  const int fd_;
  const bool is_terminal_;
  int broken_ = 0;
  std::string queue_;
  std::size_t written_ = 0;  // of queue_
  std::string held_;         // lines that wait for the end of rank 0's
  std::optional<Clock::time_point> due_;
  bool unfinished_ = false;  // rank 0's last byte was not a line break
  bool redrawn_ = false;     // and its line has carriage returns
};

}  // namespace ddprun::launch
