// The figures of a chart as a table.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/console/units.hpp"
#include "tools/lib/statistics.hpp"
#include "tools/report/chart.hpp"

namespace ddprun::report {
namespace {

std::string cell_of(const BarSeries& series, std::size_t group, double largest) {
  std::string cell = figure(series.values[group], largest);
  if (!series.low.empty()) cell += fmt::format(" [{}, {}]", figure(series.low[group]), figure(series.high[group]));
  return cell;
}

// One series may have the title of the axis instead of its name.
template <class Series>
std::vector<std::string> names_of(const std::vector<Series>& all, const std::string& title) {
  if (all.size() == 1 && !title.empty()) return {title};
  std::vector<std::string> names(all.size());
  std::ranges::transform(all, names.begin(), &Series::name);
  return names;
}

console::Table rows_of(const Bars& bars) {
  console::Table table = table_with({""}, names_of(bars.series, bars.value.title));
  const double largest = largest_in(bars);
  for (std::size_t group = 0; group < bars.groups.size(); ++group) {
    std::vector<std::string> row = {bars.groups[group]};
    for (const BarSeries& one : bars.series) row.push_back(cell_of(one, group, largest));
    table.row(row);
  }
  return table;
}

console::Table rows_of(const Shares& shares) {
  console::Table table = table_with({"per cent"}, names_of(shares.series, ""));
  for (std::size_t group = 0; group < shares.groups.size(); ++group) {
    double sum = 0;
    for (const BarSeries& one : shares.series) sum += std::isfinite(one.values[group]) ? one.values[group] : 0;
    std::vector<std::string> row = {shares.groups[group]};
    for (const BarSeries& one : shares.series) {
      const double share = one.values[group] / sum;
      row.push_back(std::isfinite(share) ? fmt::format("{:.1f}", 100 * share) : "-");
    }
    table.row(row);
  }
  return table;
}

// One row for each x of any series.
console::Table rows_of(const Lines& lines) {
  std::vector<std::string> titles = names_of(lines.series, lines.y.title);
  titles.insert(titles.begin(), lines.x.title);
  console::Table table = table_with({}, titles);
  std::map<double, std::vector<std::string>> rows;
  for (std::size_t i = 0; i < lines.series.size(); ++i) {
    for (const Point point : lines.series[i].points) {
      const auto [row, is_new] = rows.try_emplace(point.x, titles.size(), "-");
      if (is_new) row->second[0] = lines.x.bytes ? console::human_bytes(std::llround(point.x)) : figure(point.x);
      if (row->second[i + 1] == "-") row->second[i + 1] = figure(point.y);
    }
  }
  for (const auto& [x, row] : rows) table.row(row);
  return table;
}

console::Table rows_of(const Histogram& histogram) {
  console::Table table = table_with({histogram.x.title}, {"values", "min", "median", "p95", "p99", "max"});
  for (const BarSeries& series : histogram.series) {
    std::vector<std::string> row = {series.name, console::human_count(static_cast<int64_t>(series.values.size()))};
    for (const double share : {0.0, 0.5, 0.95, 0.99, 1.0}) row.push_back(figure(tools::quantile(series.values, share)));
    table.row(row);
  }
  return table;
}

console::Table rows_of(const Timeline& timeline) {
  console::Table table = table_with({"", "span"}, {"from", "to", timeline.time.title});
  for (const Span& span : timeline.spans) {
    table.row(
        {timeline.lanes[span.lane], span.label, figure(span.begin), figure(span.end), figure(span.end - span.begin)});
  }
  return table;
}

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

console::Table table_of(const Chart& chart) {
  return chart.table ? *chart.table : std::visit([](const auto& content) { return rows_of(content); }, chart.content);
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
