// A chart as data: what it shows, in which units, and the same figures as a table. Nothing is drawn here: vega_lite()
// gives a Vega-Lite specification, which a browser draws in the page (page.hpp) and vl-convert as SVG and PNG.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "console/table.hpp"

namespace ddprun::report {

enum class Scale { linear, log2, log10 };

// Values are in the unit that the title tells: "time (ms)".
struct Axis {
  std::string title;
  Scale scale = Scale::linear;
  bool whole = false;  // only whole numbers are marked: epochs, ranks
  bool bytes = false;  // marked as 1 KiB, 1 MiB, ...
};

// A value for each group, in their order; NaN: none. Where low and high are given, one for each value: an interval
// around it, drawn as a whisker.
struct BarSeries {
  std::string name;
  std::vector<double> values;
  std::vector<double> low, high;
};

// Horizontal bars, each with its value written behind it. One series: a bar a group, each in its own colour. Several:
// bars in groups, a colour a series.
struct Bars {
  Axis value;
  std::vector<std::string> groups;
  std::vector<BarSeries> series;
  std::optional<double> line;  // across all bars: 1 for a ratio
};

// One bar of 100 % for each group, divided as the series' values are; the share is written where there is room.
struct Shares {
  std::vector<std::string> groups;
  std::vector<BarSeries> series;
};

struct Point {
  double x = 0;
  double y = 0;
};

// `ideal`: what could be, not what was measured; drawn dashed and grey.
struct LineSeries {
  std::string name;
  std::vector<Point> points;  // ascending in x; a NaN is left out
  bool ideal = false;
};

struct Lines {
  Axis x, y;
  std::vector<LineSeries> series;
  bool from_zero = false;  // the y axis begins at 0
};

// How values spread: per series the share of its values, in per cent, that lies in each of some 40 equal bins. What
// lies beyond the 99.5th percentile of all is counted in the last bin, and `beyond` of the axis' title says so.
struct Histogram {
  Axis x;
  std::vector<BarSeries> series;  // values: the samples themselves, any number
};

// What happened when: spans on lanes, from the top down.
struct Span {
  std::size_t lane = 0;  // index into lanes
  std::string kind;      // gives the colour: "forward", "allreduce"
  std::string label;     // for the table and the pointer: "bucket 3, 1.00 MiB"
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
  bool half = false;  // two beside one another where the page is wide enough; one without a neighbour is whole
  std::optional<console::Table> table;  // instead of table_of(chart)
};

// A chart as wide as the page, and one of half its width.
Chart whole_chart(std::string title, std::string note, Content content);
Chart half_chart(std::string title, std::string note, Content content);

// The specification as JSON, as wide as what contains it, without a title and without colours of its own: those are the
// page's and chart_theme()'s. Throws std::logic_error where a series has another number of values than there are
// groups, or a span names a lane that is not there.
std::string vega_lite(const Chart& chart);

// One of vega_lite() as a drawing of its own: so many pixels wide, with its title and note.
std::string standalone(const std::string& specification, int width);

// Vega's configuration for a light or a dark page: a palette that colour-blind readers can tell apart (after Okabe and
// Ito, 2008), and the page's own text colours.
std::string chart_theme(bool dark);

// The figures that the chart shows: chart.table, or one made from its content.
console::Table table_of(const Chart& chart);

// Four digits that count, thousands parted by commas: "1,234", "0.06220", "25.74"; a whole number stays one: "2". Below
// 0.0001 and from 10^15 on with an exponent. NaN gives "-".
std::string figure(double value);

// A unit that makes a largest value readable: its name, and what values are multiplied by.
struct Unit {
  std::string name;
  double factor = 1;
};
Unit unit_of_seconds(double largest);           // "s", "ms", "us", "ns"
Unit unit_of_bytes_per_second(double largest);  // "GB/s", "MB/s", "kB/s" (powers of 1000)
Unit unit_of_bytes(double largest);             // "GiB", "MiB", "KiB", "B"

}  // namespace ddprun::report
