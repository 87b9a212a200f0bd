#include "cli/console/progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/console/table.hpp"

namespace ddprun::console {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr int kWidest = 40;  // of the bar itself
constexpr int kNarrowest = 10;

}  // namespace

int terminal_columns() {
  const char* term = std::getenv("TERM");
  if (term != nullptr && std::string_view(term) == "dumb") return 0;
  const char* columns = std::getenv("DDPRUN_TTY");
  if (columns != nullptr) return std::max(0, parse_number<int>(columns).value_or(0));
  return columns_of(STDERR_FILENO);
}

void ProgressBar::show(std::string_view before, int64_t done, int64_t total, std::string_view after) {
  if (columns_ <= 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (done < total && log::status_shown() && now - drawn_ < kRedraw) return;
  drawn_ = now;
  // The last column stays empty, because writing there wraps the line on some terminals; the brackets need two.
  const int columns = columns_ - 1 - 2 - static_cast<int>(before.size() + after.size());
  const int width = std::clamp(columns, kNarrowest, kWidest);
  const int64_t filled = total > 0 ? std::clamp<int64_t>(width * done / total, 0, width) : 0;
  std::string drawn(static_cast<size_t>(filled), '=');
  if (filled > 0 && filled < width) drawn.back() = '>';
  const std::string frame = fmt::format("{}[{:<{}}]{}", before, drawn, width, after);
  log::draw_status(fd_, std::string_view(frame).substr(0, static_cast<size_t>(columns_ - 1)));
}

void ProgressBar::show(int64_t epoch, int64_t epochs, int64_t step, int64_t steps, double loss,
                       double samples_per_second, double seconds_left) {
  std::string after = fmt::format("  {}/{}  loss {}", step, steps, human_number(loss));
  if (std::isfinite(samples_per_second) && samples_per_second > 0) after += "  " + human_rate(samples_per_second);
  if (const std::string left = human_time_left(seconds_left); !left.empty()) after += "  " + left;
  show(fmt::format("epoch {}/{}  ", epoch, epochs), step, steps, after);
}

void ProgressBar::clear() {
  if (columns_ > 0) log::erase_status();
}

}  // namespace ddprun::console
