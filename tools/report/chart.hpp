// A chart as data: content, units, and the same figures as a table. It draws nothing: vega_lite() returns a Vega-Lite
// specification, which a browser draws in the page (page.hpp).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/console/table.hpp"

namespace ddprun::report {

enum class Scale { linear, log2, log10 };

// Values are in the unit in the title: "time (ms)".
struct Axis {
  std::string title;
  Scale scale = Scale::linear;
  bool whole = false;  // only integer ticks: epochs, ranks
  bool bytes = false;  // ticks at 1 KiB, 1 MiB, ...
};

// One value per group; NaN: none. With low and high (one for each value): an interval around the value, drawn as a
// whisker.
struct BarSeries {
  std::string name;
  std::vector<double> values;
  std::vector<double> low, high;
};

// Horizontal bars, each labelled with its value. One series: one bar per group, each in its own colour. Several series:
// bars in groups, one colour per series.
struct Bars {
  Axis value;
  std::vector<std::string> groups;
  std::vector<BarSeries> series;
  std::optional<double> line;  // across all bars: 1 for a ratio
};

double largest_in(const Bars& bars);  // of the magnitudes of its values; 0 without any

// One bar of 100 % per group, divided in proportion to the values of the series, labelled if there is room.
struct Shares {
  std::vector<std::string> groups;
  std::vector<BarSeries> series;
};

struct Point {
  double x = 0;
  double y = 0;
};

// `ideal`: a reference that was not measured; drawn dashed and grey.
struct LineSeries {
  std::string name;
  std::vector<Point> points;  // ascending in x; a NaN is left out
  bool ideal = false;
};

struct Lines {
  Axis x, y;
  std::vector<LineSeries> series;
  bool from_zero = false;  // the y axis starts at 0
};

// A distribution of values: for each series, the percentage of its values in each of about 40 equal bins. Values beyond
// the 99.5th percentile of all are counted in the last bin; the axis title says so.
struct Histogram {
  Axis x;
  std::vector<BarSeries> series;  // values: the samples themselves, any number
};

// A timeline: spans on lanes, from top to bottom.
struct Span {
  std::size_t lane = 0;  // index into lanes
  std::string kind;      // decides the colour: "forward", "allreduce"
  std::string label;     // for the table and the tooltip: "bucket 3, 1.00 MiB"
  double begin = 0;
  double end = 0;
};

struct Timeline {
  Axis time;
  std::vector<std::string> lanes;
  std::vector<Span> spans;
};

using Content = std::variant<Bars, Shares, Lines, Histogram, Timeline>;

struct Chart {
  std::string title;
  std::string note;  // a sentence below the title; may be empty
  Content content;
  bool half = false;                      // two side by side if the page is wide enough; a single one is whole
  std::optional<console::Table> table{};  // instead of one made from its content
};

// A chart with the full width of the page, and one with half of it.
inline Chart whole_chart(std::string title, std::string note, Content content) {
  return {std::move(title), std::move(note), std::move(content)};
}
inline Chart half_chart(std::string title, std::string note, Content content) {
  return {std::move(title), std::move(note), std::move(content), true};
}

// The specification as JSON (share/*.json with the figures of the chart), as wide as its container, without title and
// colours: these come from the page and its theme. Throws std::logic_error if a series has fewer values than there are
// groups, or if a span has an invalid lane.
std::string vega_lite(const Chart& chart);

// The figures of the chart: chart.table, or a table made from its content.
console::Table table_of(const Chart& chart);

// A table whose first columns are texts, aligned left, and the others figures, aligned right.
console::Table table_with(const std::vector<std::string>& texts, const std::vector<std::string>& figures);

// Four significant digits, thousands separated by commas: "1,234", "0.06220", "25.74"; integers stay integers: "2".
// Below 0.0001 and from 10^15 on with an exponent. NaN becomes "-".
std::string figure(double value);
// In a row with a largest figure: as many decimals as that one, so that a small part has no more digits than it means.
// 0.003897 next to 0.6072 is "0.0039".
std::string figure(double value, double largest);

// A readable unit for a largest value: its name, and the factor for values.
struct Unit {
  std::string name;
  double factor = 1;
};
Unit unit_of_seconds(double largest);           // "s", "ms", "us", "ns"
Unit unit_of_bytes_per_second(double largest);  // "GB/s", "MB/s", "kB/s" (powers of 1000)

}  // namespace ddprun::report
