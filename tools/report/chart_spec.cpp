// Charts as Vega-Lite specifications: what share/*.json leaves open is filled in here.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/console/units.hpp"
#include "tools/lib/statistics.hpp"
#include "tools/report/page.hpp"

namespace ddprun::report {
namespace {

using Json = nlohmann::ordered_json;
using namespace nlohmann::literals;

constexpr double kStretchForText = 1.25;     // beyond the longest bar, for its value
constexpr double kStretchForInterval = 2;    // the same, with its interval
constexpr std::size_t kRow = 34, kBar = 22;  // pixels: a group with one bar, and each further bar
constexpr std::size_t kLane = 28;            // pixels
constexpr std::size_t kMostMarked = 60;      // a line with more points has no point marks
constexpr double kMargin = 0.06;             // fraction of the height above and below the lines
constexpr std::size_t kBins = 40;
constexpr double kCovered = 0.995;  // fraction of the values in all bins before the last

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

Json json_of(const std::string& name) {
  return Json::parse(asset(name));
}

// All integers, if they are few: Vega's tickMinStep = 1 still lets it label 1.5 as "2".
Json integers(Range range) {
  Json ticks = Json::array();
  for (double tick = std::ceil(range.low); range.high - range.low <= 10 && tick <= range.high; ++tick)
    ticks.push_back(tick);
  return ticks;
}

// The ticks of a logarithmic axis: few powers of its base, and values between powers of 10 if there are few.
Json ticks(Scale scale, Range range) {
  const double base = scale == Scale::log2 ? 2 : 10;
  const double first = std::floor(std::log(range.low) / std::log(base));
  const double last = std::ceil(std::log(range.high) / std::log(base));
  const double stride = std::max(1.0, std::ceil((last - first) / 8));
  Json ticks = Json::array();
  for (double power = first; power <= last; power += stride) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && (base == 2 || last - first > 3)) continue;
      const double tick = factor * std::pow(base, power);
      if (tick >= range.low * 0.999 && tick <= range.high * 1.001) ticks.push_back(tick);
    }
  }
  return ticks;
}

void set_axis(Json& channel, const Axis& axis, Range range) {
  constexpr const char* kScales[] = {"linear", "log2", "log10"};
  const Json kinds = json_of("axes.json");
  channel.merge_patch(kinds.at("every"));
  channel.merge_patch(kinds.at(kScales[static_cast<std::size_t>(axis.scale)]));
  if (axis.whole) channel.merge_patch(kinds.at("whole"));
  if (axis.bytes) channel.merge_patch(kinds.at("bytes"));
  channel["title"] = axis.title;
  if (range.low > range.high) return;
  channel["scale"]["domainMin"] = range.low;
  channel["scale"]["domainMax"] = range.high;
  Json values = axis.scale != Scale::linear ? ticks(axis.scale, range) : axis.whole ? integers(range) : Json::array();
  if (!values.empty()) channel["axis"]["values"] = std::move(values);
}

// The number of columns of a legend that fit on a phone, each as wide as its widest name.
std::size_t columns_of(const std::vector<std::string>& names) {
  constexpr double kPhone = 340, kLetter = 6.6, kSymbol = 26;  // pixels
  for (std::size_t columns = names.size(); columns > 1; --columns) {
    std::vector<double> widths(columns);
    for (std::size_t i = 0; i < names.size(); ++i) {
      double& width = widths[i % columns];
      width = std::max(width, kSymbol + kLetter * static_cast<double>(names[i].size()));
    }
    if (std::accumulate(widths.begin(), widths.end(), 0.0) <= kPhone) return columns;
  }
  return 1;
}

// The channel of a category: its names in this order, with a legend if there are several.
void set_names(Json& channel, const std::vector<std::string>& names) {
  channel["scale"]["domain"] = names;
  channel["legend"] = names.size() > 1 ? Json{{"columns", columns_of(names)}} : Json();
}

std::vector<std::string> names_of(const std::vector<BarSeries>& all) {
  std::vector<std::string> names;
  for (const BarSeries& one : all) names.push_back(one.name);
  return names;
}

Json spec_of(const Bars& bars) {
  Json spec = json_of("bars.json"), values = Json::array();
  const double largest = largest_in(bars);
  Range range{0, 0};
  bool has_intervals = false;
  for (std::size_t group = 0; group < bars.groups.size(); ++group) {
    for (const BarSeries& series : bars.series) {
      const double value = series.values.at(group);
      if (!std::isfinite(value)) continue;
      range.include(value);
      std::string text = figure(value, largest);
      values.push_back({{"group", bars.groups[group]}, {"series", series.name}, {"value", value}});
      if (!series.low.empty()) {
        const double low = series.low.at(group), high = series.high.at(group);
        range.include(low);
        range.include(high);
        has_intervals = has_intervals || low < high;
        values.back().update({{"low", low}, {"high", high}});
        // The figure stands at the end of the whisker, so it says that the whisker is an interval.
        if (low < high) text += " (" + figure(low, largest) + " to " + figure(high, largest) + ")";
      }
      values.back()["text"] = text;
    }
  }
  if (bars.line) range.include(*bars.line);
  const double stretch = has_intervals ? kStretchForInterval : kStretchForText;
  Json& encoding = spec["encoding"];
  set_axis(encoding["x"], bars.value, {range.low * stretch, range.high > 0 ? range.high * stretch : 1});
  encoding["y"]["scale"]["domain"] = bars.groups;
  Json& bar = spec["/layer/0/encoding"_json_pointer];
  bar["tooltip"].back()["title"] = bars.value.title;
  set_names(bar["color"], names_of(bars.series));
  if (bars.series.size() == 1) {  // each bar in its own colour
    encoding.erase("yOffset");
    bar["tooltip"].erase(1);
    bar["color"]["field"] = "group";
    bar["color"]["scale"]["domain"] = bars.groups;
  }
  if (bars.line) spec["/layer/2/data/values"_json_pointer] = {{{"value", *bars.line}}};
  if (!bars.line) spec["layer"].erase(2);  // Vega warns about layers without values
  if (!has_intervals) spec["layer"].erase(1);
  spec["height"] = bars.groups.size() * (kRow + kBar * (std::max<std::size_t>(1, bars.series.size()) - 1));
  spec["data"]["values"] = std::move(values);
  return spec;
}

Json spec_of(const Shares& shares) {
  Json spec = json_of("shares.json"), values = Json::array();
  for (std::size_t group = 0; group < shares.groups.size(); ++group) {
    for (std::size_t i = 0; i < shares.series.size(); ++i) {
      const double value = shares.series[i].values.at(group);
      if (!(value > 0)) continue;
      values.push_back(
          {{"group", shares.groups[group]}, {"series", shares.series[i].name}, {"place", i}, {"value", value}});
    }
  }
  spec["encoding"]["y"]["scale"]["domain"] = shares.groups;
  set_names(spec["/layer/0/encoding/color"_json_pointer], names_of(shares.series));
  spec["height"] = shares.groups.size() * kRow;
  spec["data"]["values"] = std::move(values);
  return spec;
}

// A logarithm needs positive numbers.
bool can_be_shown(double value, const Axis& axis) {
  return std::isfinite(value) && (axis.scale == Scale::linear || value > 0);
}

Json spec_of(const Lines& lines) {
  Json spec = json_of("lines.json"), values = Json::array();
  Range xs, ys;
  std::vector<std::string> measured;  // names
  std::size_t most = 0;               // points of a line
  for (const LineSeries& series : lines.series) {
    if (!series.ideal) measured.push_back(series.name);
    most = std::max(most, series.points.size());
    for (const Point point : series.points) {
      if (!can_be_shown(point.x, lines.x) || !can_be_shown(point.y, lines.y)) continue;
      xs.include(point.x);
      ys.include(point.y);
      const std::string at = lines.x.bytes ? console::human_bytes(std::llround(point.x)) : figure(point.x);
      values.push_back(
          {{"series", series.name}, {"x", point.x}, {"y", point.y}, {"at", at}, {"text", figure(point.y)}});
      if (series.ideal) values.back()["ideal"] = true;
    }
  }
  if (lines.from_zero) ys.include(0);
  const double margin = lines.y.scale == Scale::linear ? (ys.high - ys.low) * kMargin : 0;
  set_axis(spec["encoding"]["x"], lines.x, xs);
  set_axis(spec["encoding"]["y"], lines.y, {lines.from_zero ? ys.low : ys.low - margin, ys.high + margin});

  Json& measured_layer = spec["layer"][2];
  Json &layers = measured_layer["layer"], &tooltip = measured_layer["encoding"]["tooltip"];
  tooltip[1]["title"] = lines.x.title;
  tooltip[2]["title"] = lines.y.title;
  Json& colour = measured_layer["encoding"]["color"];
  for (Json* channel : {&colour, &layers[0]["encoding"]["strokeDash"], &layers[1]["encoding"]["shape"]})
    set_names(*channel, measured);
  if (most > kMostMarked) {
    layers[0]["mark"]["strokeWidth"] = 1;
    layers.erase(1);
  } else if (measured.size() > 1) {
    colour["legend"]["symbolStrokeWidth"] = 0;  // dashes would cut pieces from the marks
  }
  if (measured.size() == lines.series.size()) spec["layer"] = Json::array({measured_layer});
  spec["data"]["values"] = std::move(values);
  return spec;
}

Json spec_of(const Histogram& histogram) {
  Json spec = json_of("histogram.json"), values = Json::array();
  std::vector<double> all;
  const auto is_finite = [](double value) { return std::isfinite(value); };
  for (const BarSeries& series : histogram.series)
    std::copy_if(series.values.begin(), series.values.end(), std::back_inserter(all), is_finite);
  const double low = all.empty() ? 0 : *std::min_element(all.begin(), all.end());
  const double high = all.empty() ? 0 : tools::quantile(all, kCovered);
  const bool spread = high > low;
  const std::size_t bins = spread || all.empty() ? kBins : 1;
  const double width = spread ? (high - low) / (kBins - 1) : all.empty() ? 1 : std::max(1e-9, low / 100);
  for (const BarSeries& series : histogram.series) {
    std::vector<double> counts(bins + 1);  // the last, 0, ends the last bin
    for (const double value : series.values) {
      if (!is_finite(value)) continue;
      ++counts[static_cast<std::size_t>(std::min((value - low) / width, static_cast<double>(bins - 1)))];
    }
    const double sum = std::accumulate(counts.begin(), counts.end(), 0.0);
    for (std::size_t i = 0; i < counts.size() && sum > 0; ++i) {
      const double begin = low + static_cast<double>(i) * width;
      values.push_back(
          {{"series", series.name}, {"begin", begin}, {"at", figure(begin)}, {"share", 100 * counts[i] / sum}});
    }
  }
  set_axis(spec["encoding"]["x"], histogram.x, {low, low + static_cast<double>(bins) * width});
  Json& encoding = spec["/layer/0/encoding"_json_pointer];
  set_names(encoding["color"], names_of(histogram.series));
  encoding["tooltip"][1]["title"] = histogram.x.title;
  spec["data"]["values"] = std::move(values);
  return spec;
}

Json spec_of(const Timeline& timeline) {
  Json spec = json_of("timeline.json"), values = Json::array();
  Range range;
  std::vector<std::string> kinds;
  for (const Span& span : timeline.spans) {
    range.include(span.begin);
    range.include(span.end);
    if (std::find(kinds.begin(), kinds.end(), span.kind) == kinds.end()) kinds.push_back(span.kind);
    values.push_back({{"lane", timeline.lanes.at(span.lane)},
                      {"kind", span.kind},
                      {"label", span.label},
                      {"begin", span.begin},
                      {"end", span.end},
                      {"took", figure(span.end - span.begin)}});
  }
  set_axis(spec["encoding"]["x"], timeline.time, range);
  spec["encoding"]["y"]["scale"]["domain"] = timeline.lanes;
  Json& encoding = spec["/layer/0/encoding"_json_pointer];
  set_names(encoding["color"], kinds);
  encoding["tooltip"].back()["title"] = timeline.time.title;
  spec["height"] = timeline.lanes.size() * kLane;
  spec["data"]["values"] = std::move(values);
  return spec;
}

}  // namespace

std::string vega_lite(const Chart& chart) {
  Json spec = json_of("frame.json");
  spec["description"] = chart.title;
  spec["usermeta"]["note"] = chart.note;
  spec.update(std::visit([](const auto& content) { return spec_of(content); }, chart.content));
  return spec.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ddprun::report
