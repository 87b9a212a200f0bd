// Figures, as charts and tables write them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/console/table.hpp"
#include "tools/report/chart.hpp"

namespace ddprun::report {
namespace {

// The first unit of which there is at least one, else the last.
Unit unit_of(double largest, const std::vector<std::pair<const char*, double>>& units) {
  auto chosen = std::find_if(units.begin(), units.end() - 1, [&](const auto& unit) { return largest >= unit.second; });
  return {chosen->first, 1 / chosen->second};
}

}  // namespace

double largest_in(const Bars& bars) {
  double largest = 0;
  for (const BarSeries& one : bars.series) {
    for (const double value : one.values) largest = std::max(largest, std::isfinite(value) ? std::abs(value) : 0);
  }
  return largest;
}

console::Table table_with(const std::vector<std::string>& texts, const std::vector<std::string>& figures) {
  std::vector<console::Table::Column> columns;
  for (const std::string& title : texts) columns.push_back({title});
  for (const std::string& title : figures) columns.push_back({title, console::Align::right});
  return console::Table(columns);
}

std::string figure(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (value == std::round(value) && size < 1e15) return console::human_count(std::llround(value));
  if (size >= 999.95) return size < 1e15 ? console::human_count(std::llround(value)) : fmt::format("{:.3e}", value);
  return fmt::format("{:#.4g}", value);
}

std::string figure(double value, double largest) {
  const bool small = value != 0 && std::abs(value) < std::abs(largest) && std::abs(largest) < 999.95;
  if (!small) return figure(value);
  const int decimals = std::min(8, 3 - static_cast<int>(std::floor(std::log10(std::abs(largest)))));
  return value == std::round(value) ? figure(value) : fmt::format("{:.{}f}", value, decimals);
}

Unit unit_of_seconds(double largest) {
  return unit_of(largest, {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}});
}

Unit unit_of_bytes_per_second(double largest) {
  return unit_of(largest, {{"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}});
}

}  // namespace ddprun::report
