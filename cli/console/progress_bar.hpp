// The columns of a terminal, and a progress bar on stderr if that is a terminal; otherwise nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace ddprun::console {

// Columns of the terminal that shows this process's stderr; 0 without one (a pipe, a file, TERM=dumb). A rank's stderr
// is a pipe to its launcher, which passes the columns of its own terminal in DDPRUN_TTY.
int terminal_columns();

// One line that is redrawn at most ten times a second: the status line of the log, so a line of the log erases it.
// Every frame ends in a carriage return, so that other output starts at the left margin. Single-threaded.
class ProgressBar {
 public:
  ProgressBar() : ProgressBar(terminal_columns(), 2) {}
  // Writes frames to `fd`; 0 columns: never writes.
  ProgressBar(int columns, int fd) : columns_(columns), fd_(fd) {}
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // "before[=====>    ]after", cut to the columns; the last frame, with done == total, is always drawn.
  void show(std::string_view before, int64_t done, int64_t total, std::string_view after);
  // "epoch 1/3  [=====>    ]  50/469  loss 0.4321  61,234 samples/s  42 s left". Of the last two, NaN or 0 is left out.
  void show(int64_t epoch, int64_t epochs, int64_t step, int64_t steps, double loss, double samples_per_second,
            double seconds_left);
  // Erases the bar. Call it before other output than the log's.
  void clear();

 private:
  int columns_;
  int fd_;
  std::chrono::steady_clock::time_point drawn_{};
};

}  // namespace ddprun::console
