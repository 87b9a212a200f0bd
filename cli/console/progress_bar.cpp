#include "cli/console/progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/console/units.hpp"

namespace ddprun::console {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr int kWidest = 40;  // of the bar itself
constexpr int kNarrowest = 10;
constexpr std::string_view kGreen = "\x1b[32m";
constexpr std::string_view kPlain = "\x1b[0m";

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

int number_of(std::string_view text) {
  return std::max(0, parse_number<int>(text).value_or(0));
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
  return columns_of(STDERR_FILENO);
}

bool colours_wanted() {
  return terminal_columns() > 0 && variable("NO_COLOR").empty();
}

void ProgressBar::show(std::string_view before, int64_t done, int64_t total, std::string_view after) {
  if (due(done >= total)) draw(before, done, total, after);
}

void ProgressBar::show(int64_t epoch, int64_t epochs, int64_t step, int64_t steps, double loss,
                       double samples_per_second, double seconds_left) {
  at_ = {epoch, epochs, step, steps};
  if (!due(step >= steps)) return;
  const std::string of_loss = "  loss " + human_number(loss);
  const bool has_rate = std::isfinite(samples_per_second) && samples_per_second > 0;
  const std::string rate = has_rate ? "  " + human_rate(samples_per_second) : "";
  std::string left = human_time_left(seconds_left);
  if (!left.empty()) left.insert(0, "  ");
  const std::string before = at_.before(), count = at_.count();
  std::string after;
  for (const std::string& figures : {of_loss + rate + left, of_loss + left, left}) {
    after = count + figures;
    if (columns_for_bar(before, after) >= kNarrowest) break;
  }
  draw(before, step, steps, after);
}

void ProgressBar::note(std::string_view text) {
  if (!is_visible()) return;
  if (at_.steps == 0) return log::draw_status(fd_, text);
  draw(at_.before(), at_.step, at_.steps, at_.count() + "  " + std::string(text));
}

std::string ProgressBar::At::before() const {
  return fmt::format("epoch {}/{}  ", epoch, epochs);
}

std::string ProgressBar::At::count() const {
  return fmt::format("  {}/{}", step, steps);
}

bool ProgressBar::due(bool last) {
  if (!is_visible()) return false;
  const auto now = std::chrono::steady_clock::now();
  if (!last && log::status_shown() && now - drawn_ < kRedraw) return false;
  drawn_ = now;
  return true;
}

// The last column stays empty, because writing there wraps the line on some terminals; the brackets need two.
int ProgressBar::columns_for_bar(std::string_view before, std::string_view after) const {
  return columns_ - 1 - 2 - static_cast<int>(before.size() + after.size());
}

void ProgressBar::draw(std::string_view before, int64_t done, int64_t total, std::string_view after) {
  const int columns = columns_for_bar(before, after);
  std::string frame;
  if (columns >= kNarrowest) {
    const std::string drawing = bar(std::min(columns, kWidest), done, total);
    frame = std::string(before) + '[' + (colours_ ? std::string(kGreen) + drawing + std::string(kPlain) : drawing) +
            ']' + std::string(after);
  } else {
    frame = (std::string(before) + std::string(after)).substr(0, static_cast<size_t>(columns_ - 1));
  }
  log::draw_status(fd_, frame);
}

void ProgressBar::clear() {
  if (is_visible()) log::erase_status();
}

}  // namespace ddprun::console
