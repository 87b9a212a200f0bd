// The output of the ranks, line by line: to the launcher's stdout and stderr, and to a log file per rank.
#pragma once

#include <poll.h>

#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "launch/child.hpp"

namespace ddprun::launch {

// An output stream of the launcher. Buffers what the reader does not accept yet; only flush() blocks.
class Screen {
 public:
  // The caller owns `fd`.
  Screen(int fd, bool on_terminal) : fd_(fd), on_terminal_(on_terminal) {}

  // A whole line, without line break. That of rank 0 may continue what part() has printed. Any other one begins a new
  // line; on a terminal it replaces a redrawn one (a progress bar).
  void line(std::string_view text, bool of_rank0 = false);
  // A part of rank 0's line, unchanged.
  void part(std::string_view text);

  // For a poll loop: whether there is something to write, and writing as much as possible without blocking.
  int fd() const { return fd_; }
  bool pending() const { return written_ < queue_.size(); }
  bool full() const { return queue_.size() - written_ > kMostQueued; }  // the reader is far behind: accept nothing more
  void write_some();

  void flush();  // writes everything, however long the reader takes

  // The errno of a failed write, for example if the reader has closed the pipe (EPIPE) or the disk is full; otherwise
  // 0. Later output is dropped.
  int broken() const { return broken_; }

 private:
  bool write_chunk(std::size_t most);

  static constexpr std::size_t kMostQueued = 1 << 20;
  const int fd_;
  const bool on_terminal_;
  int broken_ = 0;
  std::string queue_;
  std::size_t written_ = 0;  // bytes of queue_ already written
  bool unfinished_ = false;  // the last byte is of part()
  bool redrawn_ = false;     // and that line has carriage returns
};

// Lines of rank 0 pass unchanged; those of other ranks get the prefix "[rank1] ". Single-threaded.
class JobOutput {
 public:
  // For `ranks` ranks from `first`. Creates log_dir/rank<N>.log for each; "" for no logs. Throws Error(failure).
  JobOutput(int first, int ranks, const std::string& log_dir);

  // Reads at most one buffer of stdout and one of stderr, so that all ranks get their turn. `rank` counts from `first`.
  // False if there is no more at the moment.
  bool read(int rank, Child& child);
  void finish(int rank);  // its end: prints unfinished lines

  // A line of the launcher itself, on stderr.
  void print(std::string_view text) { screens_.back().line(text); }

  bool full() const;  // read no more output for now
  // For a poll loop: adds the descriptors on which something is waiting to be written.
  void add_to(std::vector<pollfd>& entries) const;
  // Writes what can be written without blocking. Warns once if the output is lost from here on.
  void write_some();

  // Writes everything.
  void flush();
  // After flush(): "stdout: No space left on device" if output was lost. A reader that has closed its pipe has read
  // enough: then "".
  std::string lost() const;

 private:
  struct Line {  // of a stream of a rank; it has no end yet
    Screen& screen;
    std::string text = {};
  };
  bool read(int rank, Line& line, UniqueFd& pipe);
  void print_line(int rank, Line& line);
  void print_part(int rank, Line& line);
  void log(int rank, std::string_view bytes);

  const int first_;
  std::deque<Screen> screens_;  // one if stdout and stderr are the same file, so that the order of lines is kept
  std::vector<std::array<Line, 2>> lines_;  // by rank: of stdout and stderr
  std::vector<UniqueFd> logs_;
  bool warned_ = false;
};

}  // namespace ddprun::launch
