// The columns of a terminal, and a progress bar on stderr if that is a terminal; otherwise nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace ddprun::console {

// Columns of the terminal that shows this process's stderr; 0 without one (a pipe, a file, TERM=dumb). A rank's stderr
// is a pipe to its launcher, which passes the columns of its own terminal in DDPRUN_TTY.
int terminal_columns();

// Whether colours may be used: a terminal, and NO_COLOR (no-color.org) unset or empty.
bool colours_wanted();

// One line that is redrawn at most ten times a second: the status line of the log, so a line of the log erases it.
// Every frame ends in a carriage return, so that other output starts at the left margin. Single-threaded.
class ProgressBar {
 public:
  ProgressBar() : ProgressBar(terminal_columns(), colours_wanted(), 2) {}
  // Writes frames to `fd`; 0 columns: never writes.
  ProgressBar(int columns, bool colours, int fd) : columns_(columns), colours_(colours), fd_(fd) {}
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  bool is_visible() const { return columns_ > 0; }

  // "before[=====>    ]after"; the last frame, with done == total, is always drawn.
  void show(std::string_view before, int64_t done, int64_t total, std::string_view after);
  // "epoch 1/3  [=====>    ]  50/469  loss 0.4321  61,234 samples/s  42 s left". Of the last two, NaN or 0 is left out;
  // on a narrow terminal, first the rate and then the loss.
  void show(int64_t epoch, int64_t epochs, int64_t step, int64_t steps, double loss, double samples_per_second,
            double seconds_left);
  // The epoch and the step of the last show(), with this note in the place of the figures: "epoch 1/3  [=====>    ]
  // 50/469  step 51: 12 s". Always drawn.
  void note(std::string_view text);
  // Erases the bar. Call it before other output than the log's.
  void clear();

 private:
  // The place in the training.
  struct At {
    int64_t epoch = 0, epochs = 0, step = 0, steps = 0;
    std::string before() const;  // the bar
    std::string count() const;
  };

  bool due(bool last);
  int columns_for_bar(std::string_view before, std::string_view after) const;
  void draw(std::string_view before, int64_t done, int64_t total, std::string_view after);

  int columns_;
  bool colours_;
  int fd_;
  At at_;
  std::chrono::steady_clock::time_point drawn_{};
};

}  // namespace ddprun::console
