#include "cli/console/units.hpp"

#include <fmt/format.h>

#include <cmath>

namespace ddprun::console {
namespace {

// 1.23, 12.3, 123: the limits are where rounding would add a digit.
std::string three_digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

std::string minutes(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  const int64_t in_minutes = (whole + 30) / 60;
  return fmt::format("{} h {:02} min", in_minutes / 60, in_minutes % 60);
}

}  // namespace

std::string human_time(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 0) return fmt::format("-{}", human_time(-seconds));
  if (seconds == 0) return "0 s";
  if (seconds < 999.5e-9) return three_digits(seconds * 1e9) + " ns";
  if (seconds < 999.5e-6) return three_digits(seconds * 1e6) + " us";
  if (seconds < 999.5e-3) return three_digits(seconds * 1e3) + " ms";
  if (seconds < 59.95) return three_digits(seconds) + " s";
  return minutes(seconds);
}

std::string human_time_left(double seconds) {
  if (!std::isfinite(seconds) || seconds <= 0) return "";
  const double whole = std::ceil(seconds);
  return (whole < 60 ? fmt::format("{:.0f} s", whole) : minutes(whole)) + " left";
}

std::string human_bytes(int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1023.5) break;
    value /= 1024;
    unit = next;
  }
  return three_digits(value) + " " + unit;
}

std::string human_count(int64_t count) {
  std::string text = std::to_string(count);
  const size_t first_digit = count < 0 ? 1 : 0;
  for (size_t at = text.size(); at > first_digit + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string several(int64_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
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
  if (bytes_per_second < 999.5) return three_digits(bytes_per_second) + " B/s";
  if (bytes_per_second < 999.5e3) return three_digits(bytes_per_second * 1e-3) + " kB/s";
  if (bytes_per_second < 999.5e6) return three_digits(bytes_per_second * 1e-6) + " MB/s";
  return three_digits(bytes_per_second * 1e-9) + " GB/s";
}

}  // namespace ddprun::console
