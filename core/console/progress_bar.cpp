#include "console/progress_bar.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "console/terminal.hpp"
#include "console/units.hpp"

namespace ddprun::console {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr int kWidest = 40;  // of the bar itself
constexpr int kNarrowest = 10;
constexpr std::string_view kEraseLine = "\x1b[2K";
constexpr std::string_view kGreen = "\x1b[32m";
constexpr std::string_view kPlain = "\x1b[0m";

int number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0 ? number : 0;
}

// A bar that cannot be drawn must not stop training, so errors of the terminal are ignored.
void send(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

std::string bar(int width, int64_t step, int64_t steps) {
  const int64_t filled = steps > 0 ? std::clamp<int64_t>(width * step / steps, 0, width) : 0;
  std::string text(static_cast<size_t>(filled), '=');
  if (filled > 0 && filled < width) text.back() = '>';
  text.resize(static_cast<size_t>(width), ' ');
  return text;
}

}  // namespace

int terminal_columns() {
  if (variable("TERM") == "dumb") return 0;
  if (std::getenv("DDPRUN_TTY") != nullptr) return number_of(variable("DDPRUN_TTY"));
  winsize size{};
  return ::isatty(STDERR_FILENO) && ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool colours_wanted() {
  return terminal_columns() > 0 && variable("NO_COLOR").empty();
}

void ProgressBar::show(std::string_view before, int64_t done, int64_t total, std::string_view after) {
  if (due(done >= total)) draw(before, done, total, after);
}

void ProgressBar::show(int64_t epoch, int64_t epochs, int64_t step, int64_t steps, double loss,
                       double samples_per_second, double seconds_left) {
  if (!due(step >= steps)) return;
  std::string after = fmt::format("  {}/{}  loss {:.4f}", step, steps, loss);
  if (std::isfinite(samples_per_second) && samples_per_second > 0) after += "  " + human_rate(samples_per_second);
  if (const std::string left = human_time_left(seconds_left); !left.empty()) after += "  " + left;
  draw(fmt::format("epoch {}/{}  ", epoch, epochs), step, steps, after);
}

bool ProgressBar::due(bool last) const {
  if (columns_ <= 0) return false;
  return !shown_ || last || std::chrono::steady_clock::now() - drawn_ >= kRedraw;
}

void ProgressBar::draw(std::string_view before, int64_t done, int64_t total, std::string_view after) {
  // The last column stays empty, because writing there wraps the line on some terminals; the brackets need two.
  const int room = columns_ - 1 - 2 - static_cast<int>(before.size() + after.size());
  std::string frame;
  if (room >= kNarrowest) {
    const std::string drawing = bar(std::min(room, kWidest), done, total);
    frame = std::string(before) + '[' + (colours_ ? std::string(kGreen) + drawing + std::string(kPlain) : drawing) +
            ']' + std::string(after);
  } else {
    frame = (std::string(before) + std::string(after)).substr(0, static_cast<size_t>(columns_ - 1));
  }
  send(fd_, std::string(kEraseLine) + frame + '\r');
  shown_ = true;
  drawn_ = std::chrono::steady_clock::now();
}

void ProgressBar::clear() {
  if (shown_) send(fd_, std::string(kEraseLine) + '\r');
  shown_ = false;
}

}  // namespace ddprun::console
