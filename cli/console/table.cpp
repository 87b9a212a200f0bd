#include "cli/console/table.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "base/text.hpp"

namespace ddprun::console {
namespace {

// 1.23, 12.3, 123: the limits are where rounding would add a digit.
std::string three_digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

// The value in the first of the units, each `step` times the one before, in which it is below `step`; or in the last.
std::string in_unit(double value, double step, std::initializer_list<const char*> units) {
  auto unit = units.begin();
  for (; unit + 1 != units.end() && value >= step - 0.5; ++unit) value /= step;
  return three_digits(value) + " " + *unit;
}

std::string minutes(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  const int64_t in_minutes = (whole + 30) / 60;
  return fmt::format("{} h {:02} min", in_minutes / 60, in_minutes % 60);
}

constexpr size_t kGap = 2;
constexpr size_t kLeastText = 12;  // the least width of a column whose texts are broken

size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

// The text in lines of whole words; a further line of a text that begins with "-> " is indented.
std::vector<std::string> broken(const std::string& text, size_t width) {
  if (width_of(text) <= width) return {text};
  const std::string indent = text.starts_with("-> ") ? "   " : "";
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && width_of(lines.back()) + 1 + width_of(word) > width)
      lines.push_back(indent + word);
    else
      lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<Table::Column>& columns,
                    const std::vector<size_t>& widths, size_t indent) {
  std::string line(indent, ' ');
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(std::max(widths[i], width_of(cells[i])) - width_of(cells[i]), ' ');
    line += columns[i].align == Align::left ? cells[i] + padding : padding + cells[i];
    line.append(kGap, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

std::string human_time(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 0) return fmt::format("-{}", human_time(-seconds));
  if (seconds == 0) return "0 s";
  return seconds < 59.95 ? in_unit(seconds * 1e9, 1000, {"ns", "us", "ms", "s"}) : minutes(seconds);
}

std::string human_time_left(double seconds) {
  if (!std::isfinite(seconds) || seconds <= 0) return "";
  const double whole = std::ceil(seconds);
  return (whole < 60 ? fmt::format("{:.0f} s", whole) : minutes(whole)) + " left";
}

std::string human_bytes(int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  return in_unit(static_cast<double>(bytes) / 1024, 1024, {"KiB", "MiB", "GiB", "TiB"});
}

std::string human_count(int64_t count) {
  std::string text = std::to_string(count);
  const size_t first_digit = count < 0 ? 1 : 0;
  for (size_t at = text.size(); at > first_digit + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string several(int64_t count, const std::string& thing) {
  return human_count(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string human_number(double value) {
  const double size = std::abs(value);
  if (size == 0 || (size >= 0.1 && size < 1e6) || !std::isfinite(value)) return fmt::format("{:.4f}", value);
  return fmt::format("{:#.4g}", value);
}

std::string human_rate(double samples_per_second) {
  if (!std::isfinite(samples_per_second)) return "-";
  if (samples_per_second < 99.95) return three_digits(samples_per_second) + " samples/s";
  return human_count(std::llround(samples_per_second)) + " samples/s";
}

std::string percent(double share, int decimals) {
  return fmt::format("{:.{}f} %", 100 * share, decimals);
}

std::string human_bandwidth(double bytes_per_second) {
  if (!std::isfinite(bytes_per_second)) return "-";
  return in_unit(bytes_per_second, 1000, {"B/s", "kB/s", "MB/s", "GB/s"});
}

void Table::row(std::vector<std::string> cells) {
  if (cells.size() > columns_.size()) throw std::logic_error("a table row has more cells than the table has columns");
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(int indent, int columns) const {
  const auto margin = static_cast<size_t>(indent), limit = static_cast<size_t>(columns);
  std::vector<std::string> titles;
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    titles.push_back(columns_[i].title);
    widths.push_back(width_of(titles[i]));
    for (const auto& cells : rows_) widths[i] = std::max(widths[i], width_of(cells[i]));
  }
  const auto others = std::accumulate(widths.begin(), widths.end() - 1, margin + kGap * (widths.size() - 1));
  const bool breaks = columns > 0 && columns_.back().align == Align::left && others + kLeastText <= limit;
  if (breaks && others + widths.back() > limit) {
    widths.back() = limit - others;
  }
  std::string text;
  const bool titled = std::ranges::any_of(titles, [](const std::string& title) { return !title.empty(); });
  if (titled) text += line_of(titles, columns_, widths, margin);
  for (auto cells : rows_) {
    for (std::string& line : broken(cells.back(), widths.back())) {
      cells.back() = std::move(line);
      text += line_of(cells, columns_, widths, margin);
      std::fill(cells.begin(), cells.end(), "");
    }
  }
  return text;
}

std::string Table::printed(int indent) const {
  return text(indent, columns_of(STDOUT_FILENO));
}

}  // namespace ddprun::console
