// A bar on stderr while a terminal looks on; nothing anywhere else.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace ddprun::console {

// Columns of the terminal that will show this process's stderr; 0 for none (a pipe, a file, TERM=dumb). A rank's stderr
// is a pipe to its launcher, which says in DDPRUN_TTY how many columns its own terminal has.
int terminal_columns();

// Whether colours may be used: a terminal, and NO_COLOR (no-color.org) unset or empty.
bool colours_wanted();

// One line that redraws itself at most ten times a second. Every frame ends in a carriage return, so that a line
// printed by someone else starts at the margin. One thread.
class ProgressBar {
 public:
  ProgressBar() : ProgressBar(terminal_columns(), colours_wanted(), 2) {}
  // Writes frames to `fd`; 0 columns: never writes.
  ProgressBar(int columns, bool colours, int fd) : columns_(columns), colours_(colours), fd_(fd) {}
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // "before[=====>    ]after"; the last frame, with done == total, is always drawn.
  void show(std::string_view before, int64_t done, int64_t total, std::string_view after);
  // "epoch 1/3  [=====>    ]  50/469  loss 0.4321  61,234 samples/s  42 s left". Of the last two, what is NaN or 0 is
  // left out.
  void show(int64_t epoch, int64_t epochs, int64_t step, int64_t steps, double loss, double samples_per_second,
            double seconds_left);
  // Takes the bar off the screen. To be called before any other line is printed.
  void clear();

 private:
  bool due(bool last) const;
  void draw(std::string_view before, int64_t done, int64_t total, std::string_view after);

  int columns_;
  bool colours_;
  int fd_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point drawn_{};
};

}  // namespace ddprun::console
