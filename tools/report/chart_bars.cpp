// Bars and shares.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "tools/report/vega.hpp"

namespace ddprun::report::vega {
namespace {

constexpr double kStretchForText = 1.25;     // beyond the longest bar, for its value
constexpr double kStretchForInterval = 2;    // the same, with its interval
constexpr std::size_t kRow = 34, kBar = 22;  // pixels: a group with one bar, and each further bar
constexpr double kLeastWritten = 7;          // per cent: a smaller part has no room for its label

struct Extent {
  double low = 0, high = 0;

  void include(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

double bound(const std::vector<double>& bounds, std::size_t group, double otherwise) {
  return bounds.empty() ? otherwise : bounds[group];
}

bool has_intervals(const Bars& bars) {
  return std::any_of(bars.series.begin(), bars.series.end(), [](const BarSeries& s) { return !s.low.empty(); });
}

Extent extent_of(const Bars& bars) {
  Extent extent;
  for (const BarSeries& series : bars.series) {
    for (const auto* values : {&series.values, &series.low, &series.high}) {
      for (const double value : *values) extent.include(value);
    }
  }
  if (bars.line) extent.include(*bars.line);
  const double stretch = has_intervals(bars) ? kStretchForInterval : kStretchForText;
  return {extent.low * stretch, extent.high > 0 ? extent.high * stretch : 1};
}

// The figure stands at the end of the whisker, so it says that the whisker is an interval.
std::string text_of(double value, double low, double high, double largest) {
  std::string text = figure(value, largest);
  if (low < high) text += " (" + figure(low, largest) + " to " + figure(high, largest) + ")";
  return text;
}

Json values_of(const Bars& bars) {
  const double largest = largest_in(bars);
  Json values = Json::array();
  for (std::size_t group = 0; group < bars.groups.size(); ++group) {
    for (const BarSeries& series : bars.series) {
      const double value = series.values[group];
      if (!std::isfinite(value)) continue;
      const double low = bound(series.low, group, value), high = bound(series.high, group, value);
      values.push_back({{"group", bars.groups[group]},
                        {"series", series.name},
                        {"value", value},
                        {"low", low},
                        {"high", high},
                        {"end", std::max({value, high, 0.0})},
                        {"text", text_of(value, low, high, largest)}});
    }
  }
  return values;
}

Json row(const std::string& name) {
  Json channel = field(name, "nominal");
  channel["sort"] = nullptr;
  channel["title"] = nullptr;
  return channel;
}

// "a = 1, b = 2" on two lines.
Json named_row(const std::string& name) {
  Json channel = row(name);
  channel["axis"] = {{"labelExpr", "split(datum.label, ', ')"}};
  return channel;
}

struct Share {
  double begin = 0, end = 0;
};

// The parts of each series in the group, in order, in per cent of their sum.
std::vector<Share> divide(const Shares& shares, std::size_t group) {
  const auto part = [&](const BarSeries& series) {
    return std::isfinite(series.values[group]) ? std::max(0.0, series.values[group]) : 0.0;
  };
  double sum = 0;
  for (const BarSeries& series : shares.series) sum += part(series);
  std::vector<Share> divided;
  double end = 0;
  for (const BarSeries& series : shares.series) {
    const double begin = end;
    end += sum > 0 ? 100 * part(series) / sum : 0;
    divided.push_back({begin, end});
  }
  return divided;
}

Json values_of(const Shares& shares) {
  Json values = Json::array();
  for (std::size_t group = 0; group < shares.groups.size(); ++group) {
    const std::vector<Share> divided = divide(shares, group);
    for (std::size_t i = 0; i < divided.size(); ++i) {
      const double share = divided[i].end - divided[i].begin;
      values.push_back({{"group", shares.groups[group]},
                        {"series", shares.series[i].name},
                        {"begin", divided[i].begin},
                        {"end", divided[i].end},
                        {"middle", (divided[i].begin + divided[i].end) / 2},
                        {"share", fmt::format("{:.1f} %", share)},
                        {"text", share < kLeastWritten ? "" : std::to_string(std::lround(share)) + " %"}});
    }
  }
  return values;
}

}  // namespace

View view_of(const Bars& bars) {
  expect_values(bars.groups, bars.series);
  const Json values = values_of(bars);
  const auto [low, high] = extent_of(bars);
  const bool grouped = bars.series.size() > 1;
  const auto place = [&](Json x) {
    Json encoding = {{"y", named_row("group")}, {"x", std::move(x)}};
    if (grouped) encoding["yOffset"] = row("series");
    return encoding;
  };
  const Json x = measure("value", bars.value, low, high);

  View view;
  view.height = bars.groups.size() * (grouped ? kRow + kBar * (bars.series.size() - 1) : kRow);
  Json bar = place(x);
  bar["color"] = grouped ? colour("series", names_of(bars.series), true) : colour("group", bars.groups, false);
  bar["tooltip"] = grouped ? tooltip({{"group", ""}, {"series", ""}, {"text", bars.value.title}})
                           : tooltip({{"group", ""}, {"text", bars.value.title}});
  view.layers.push_back(layer(values, {{"type", "bar"}}, bar));
  if (has_intervals(bars)) {
    Json whisker = place(measure("low", bars.value, low, high));
    whisker["x2"] = {{"field", "high"}};
    view.layers.push_back(layer(values, {{"type", "rule"}, {"style", "whisker"}}, whisker));
  }
  if (bars.line) {
    const Json at = {{"x", measure("at", bars.value, low, high)}};
    view.layers.push_back(layer({{{"at", *bars.line}}}, {{"type", "rule"}, {"style", "reference"}}, at));
  }
  Json text = place(measure("end", bars.value, low, high));
  text["text"] = {{"field", "text"}};
  for (const char* style : {"halo", "value"}) {  // the line may cross a value
    view.layers.push_back(layer(values, {{"type", "text"}, {"style", style}, {"align", "left"}, {"dx", 5}}, text));
  }
  return view;
}

View view_of(const Shares& shares) {
  expect_values(shares.groups, shares.series);
  const Json values = values_of(shares);
  const Axis axis{"share of the step (%)"};
  View view;
  view.height = shares.groups.size() * kRow;
  view.layers.push_back(layer(values, {{"type", "bar"}},
                              {{"y", named_row("group")},
                               {"x", measure("begin", axis, 0, 100)},
                               {"x2", {{"field", "end"}}},
                               {"color", colour("series", names_of(shares.series), true)},
                               {"tooltip", tooltip({{"group", ""}, {"series", ""}, {"share", "share"}})}}));
  view.layers.push_back(
      layer(values, {{"type", "text"}, {"style", "inside"}},
            {{"y", named_row("group")}, {"x", measure("middle", axis, 0, 100)}, {"text", {{"field", "text"}}}}));
  return view;
}

}  // namespace ddprun::report::vega
