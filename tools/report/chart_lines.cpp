// Lines, histograms and timelines.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "cli/console/units.hpp"
#include "record/statistics.hpp"
#include "tools/report/vega.hpp"

namespace ddprun::report::vega {
namespace {

constexpr std::size_t kMostMarked = 60;  // a line with more points has no point marks
constexpr std::size_t kLane = 28;        // pixels
constexpr std::size_t kBins = 40;
constexpr double kRoom = 0.06;      // fraction of the height above and below the lines
constexpr double kCovered = 0.995;  // fraction of the values in all bins before the last

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// A logarithm needs positive numbers.
bool can_be_shown(double value, const Axis& axis) {
  return std::isfinite(value) && (axis.scale == Scale::linear || value > 0);
}

std::vector<Point> shown(const std::vector<Point>& points, const Lines& lines) {
  std::vector<Point> kept;
  std::copy_if(points.begin(), points.end(), std::back_inserter(kept),
               [&](Point p) { return can_be_shown(p.x, lines.x) && can_be_shown(p.y, lines.y); });
  return kept;
}

Json value_of(const std::string& series, Point point, const Lines& lines) {
  const std::string x = lines.x.bytes ? console::human_bytes(static_cast<int64_t>(point.x)) : figure(point.x);
  return {{"series", series}, {"x", point.x}, {"y", point.y}, {"at", x}, {"text", figure(point.y)}};
}

Json values_of(const Lines& lines, bool ideal) {
  Json values = Json::array();
  for (const LineSeries& series : lines.series) {
    if (series.ideal != ideal) continue;
    for (const Point point : shown(series.points, lines)) values.push_back(value_of(series.name, point, lines));
  }
  return values;
}

std::pair<Range, Range> extents_of(const Lines& lines) {
  Range x, y;
  for (const LineSeries& series : lines.series) {
    for (const Point point : shown(series.points, lines)) x.include(point.x), y.include(point.y);
  }
  if (lines.from_zero) y.include(0);
  return {x, y};
}

// The series that were measured.
std::vector<std::string> measured(const Lines& lines) {
  std::vector<std::string> names;
  for (const LineSeries& series : lines.series) {
    if (!series.ideal) names.push_back(series.name);
  }
  return names;
}

std::size_t most_points(const Lines& lines) {
  std::size_t most = 0;
  for (const LineSeries& series : lines.series) most = std::max(most, series.points.size());
  return most;
}

// The name of each ideal line, at its end.
void add_ideal(View& view, const Lines& lines, const Json& x, const Json& y) {
  view.layers.push_back(layer(values_of(lines, true), {{"type", "line"}, {"style", "reference"}},
                              {{"x", x}, {"y", y}, {"detail", field("series", "nominal")}}));
  Json ends = Json::array();
  for (const LineSeries& series : lines.series) {
    const auto points = shown(series.points, lines);
    if (series.ideal && !points.empty()) ends.push_back(value_of(series.name, points.back(), lines));
  }
  const Json mark = {{"type", "text"}, {"style", "reference-name"}, {"align", "right"}, {"dx", -12}, {"dy", -6}};
  view.layers.push_back(layer(ends, mark, {{"x", x}, {"y", y}, {"text", {{"field", "series"}}}}));
}

struct Bins {
  double low = 0, width = 1;
  std::size_t count = kBins;

  std::size_t of(double value) const {
    const double at = (value - low) / width;
    return at <= 0 ? 0 : std::min(count - 1, static_cast<std::size_t>(at));
  }
};

Bins bins_of(const Histogram& histogram) {
  std::vector<double> all;
  for (const BarSeries& series : histogram.series) {
    std::copy_if(series.values.begin(), series.values.end(), std::back_inserter(all),
                 [](double value) { return std::isfinite(value); });
  }
  if (all.empty()) return {};
  const double low = *std::min_element(all.begin(), all.end());
  const double high = record::quantile(all, kCovered);
  return high > low ? Bins{low, (high - low) / (kBins - 1), kBins} : Bins{low, std::max(1e-9, low / 100), 1};
}

// The percentage of the series' values in each bin, and a final 0 that ends the last bin.
Json values_of(const Histogram& histogram, const Bins& bins) {
  Json values = Json::array();
  for (const BarSeries& series : histogram.series) {
    std::vector<double> counts(bins.count + 1);
    double all = 0;
    for (const double value : series.values) {
      if (!std::isfinite(value)) continue;
      ++counts[bins.of(value)];
      ++all;
    }
    for (std::size_t i = 0; i < counts.size() && all > 0; ++i) {
      const double begin = bins.low + static_cast<double>(i) * bins.width, share = 100 * counts[i] / all;
      values.push_back({{"series", series.name}, {"begin", begin}, {"at", figure(begin)}, {"share", share}});
    }
  }
  return values;
}

std::vector<std::string> kinds_of(const Timeline& timeline) {
  std::vector<std::string> kinds;
  for (const Span& span : timeline.spans) {
    if (std::find(kinds.begin(), kinds.end(), span.kind) == kinds.end()) kinds.push_back(span.kind);
  }
  return kinds;
}

// Each later line has wider gaps, so that one below it, with equal values, shows.
Json dashes(const std::vector<std::string>& names, Json channel) {
  Json patterns = Json::array();
  for (std::size_t i = 0; i < names.size(); ++i) {
    patterns.push_back(i == 0 ? Json::array({1, 0}) : Json::array({8, 4 * i}));
  }
  channel["scale"] = {{"domain", names}, {"range", patterns}};
  return channel;
}

}  // namespace

View view_of(const Lines& lines) {
  const auto [xs, ys] = extents_of(lines);
  const Json x = measure("x", lines.x, xs.low, xs.high);
  const double room = lines.y.scale == Scale::linear ? (ys.high - ys.low) * kRoom : 0;
  const Json y = measure("y", lines.y, lines.from_zero ? ys.low : ys.low - room, ys.high + room);
  const std::vector<std::string> names = measured(lines);
  const Json values = values_of(lines, false);
  const bool few = most_points(lines) <= kMostMarked;
  Json colours = colour("series", names, names.size() > 1);
  if (few && names.size() > 1) colours["legend"]["symbolStrokeWidth"] = 0;  // dashes would cut pieces from the marks
  const Json tips = tooltip({{"series", ""}, {"at", lines.x.title}, {"text", lines.y.title}});

  View view;
  if (names.size() < lines.series.size()) add_ideal(view, lines, x, y);
  view.layers.push_back(
      layer(values, {{"type", "line"}, {"strokeWidth", few ? 2 : 1}},
            {{"x", x}, {"y", y}, {"color", colours}, {"strokeDash", dashes(names, colours)}, {"tooltip", tips}}));
  if (few) {
    Json shape = colours;
    view.layers.push_back(layer(values, {{"type", "point"}, {"filled", true}, {"size", 45}, {"opacity", 1}},
                                {{"x", x}, {"y", y}, {"color", colours}, {"shape", shape}, {"tooltip", tips}}));
  }
  return view;
}

View view_of(const Histogram& histogram) {
  const Bins bins = bins_of(histogram);
  const double end = bins.low + static_cast<double>(bins.count) * bins.width;
  const std::vector<std::string> names = names_of(histogram.series);
  Json y = measure("share", {"steps (%)"}, 0, NAN);
  y["stack"] = nullptr;
  View view;
  view.layers.push_back(layer(values_of(histogram, bins),
                              {{"type", "area"}, {"interpolate", "step-after"}, {"line", true}, {"fillOpacity", 0.25}},
                              {{"x", measure("begin", histogram.x, bins.low, end)},
                               {"y", y},
                               {"color", colour("series", names, names.size() > 1)},
                               {"tooltip", tooltip({{"series", ""}, {"at", histogram.x.title}, {"share", "%"}})}}));
  return view;
}

View view_of(const Timeline& timeline) {
  Json values = Json::array();
  Range extent;
  for (const Span& span : timeline.spans) {
    if (span.lane >= timeline.lanes.size()) throw std::logic_error("a span has an invalid lane");
    extent.include(span.begin);
    extent.include(span.end);
    values.push_back({{"lane", timeline.lanes[span.lane]},
                      {"kind", span.kind},
                      {"label", span.label},
                      {"begin", span.begin},
                      {"end", span.end},
                      {"took", figure(span.end - span.begin)}});
  }
  Json lane = field("lane", "nominal");
  lane["title"] = nullptr;
  lane["scale"] = {{"domain", timeline.lanes}};
  View view;
  view.height = timeline.lanes.size() * kLane;
  view.layers.push_back(layer(values, {{"type", "bar"}, {"style", "span"}},
                              {{"y", lane},
                               {"x", measure("begin", timeline.time, extent.low, extent.high)},
                               {"x2", {{"field", "end"}}},
                               {"color", colour("kind", kinds_of(timeline), true)},
                               {"tooltip", tooltip({{"lane", ""}, {"label", ""}, {"took", timeline.time.title}})}}));
  return view;
}

}  // namespace ddprun::report::vega
