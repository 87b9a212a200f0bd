// An output stream of the launcher that prints lines of all ranks without cutting any of them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace ddprun::launch {

// Passes rank 0's bytes unchanged and other ranks' output as whole lines. Buffers what the reader does not accept yet;
// only flush() blocks. Single-threaded.
class Screen {
 public:
  using Clock = std::chrono::steady_clock;

  // The caller owns `fd`. columns: of a terminal, otherwise 0. On a terminal, a redrawn line (a progress bar) is erased
  // before another line is printed, and long lines are wrapped; elsewhere a redrawn line is ended with a line break.
  Screen(int fd, int columns) : fd_(fd), columns_(columns) {}

  // Rank 0's bytes. Only lines that come whole are wrapped.
  void pass(std::string_view bytes);

  // A whole line, without line break. If rank 0 is in the middle of a line, this one waits a moment for the rest,
  // unless rank 0's line is being redrawn, or many lines wait.
  void line(std::string_view text);

  // A line of the launcher itself: printed immediately, after all lines before it.
  void last_line(std::string_view text);

  // Prints the lines that have waited too long for the end of rank 0's line.
  void release_due(Clock::time_point now);

  // For a poll loop: whether there is something to write, and writing as much as possible without blocking.
  int fd() const { return fd_; }
  bool pending() const { return written_ < queue_.size(); }
  bool full() const;  // the reader is far behind: accept nothing more
  void write_some();

  // Writes everything, including waiting lines, however long the reader takes.
  void flush();

  // The errno of a failed write, for example if the reader has closed the pipe (EPIPE) or the disk is full; otherwise
  // 0. Later output is dropped.
  int broken() const { return broken_; }

 private:
  void release();
  void end_unfinished_line();
  bool write_chunk(std::size_t most);

  const int fd_;
  const int columns_;
  int broken_ = 0;
  std::string queue_;
  std::size_t written_ = 0;  // bytes of queue_ already written
  std::string held_;         // lines that wait for the end of rank 0's line
  std::optional<Clock::time_point> due_;
  bool unfinished_ = false;  // rank 0's last byte was not a line break
  bool redrawn_ = false;     // and the line contains carriage returns
};

}  // namespace ddprun::launch
