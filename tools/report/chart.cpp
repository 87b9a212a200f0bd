// Charts as Vega-Lite specifications, with what share/*.json leaves open, and as tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/console/table.hpp"
#include "tools/lib/statistics.hpp"
#include "tools/report/page.hpp"

namespace ddprun::report {
namespace {

using Json = nlohmann::ordered_json;

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
  return Json::parse(asset(name + ".json"));
}

// In a specification, "$x/title" stands for given["x"]["title"]; a part with {"$if": "x"} is left out if that is false
// or null.
void fill_in(Json& part, const Json& given) {
  const auto value_of = [&](const Json& name) { return given.at(Json::json_pointer("/" + name.get<std::string>())); };
  if (part.is_string() && part.get_ref<const std::string&>().starts_with('$')) {
    part = value_of(part.get<std::string>().substr(1));
  } else if (part.is_structured()) {
    for (auto it = part.begin(); it != part.end();) {
      const Json used = it->is_object() && it->contains("$if") ? value_of(it->at("$if")) : Json(true);
      const bool is_out = used == false || used.is_null();
      if (!is_out) fill_in(*it, given);
      it = is_out ? part.erase(it) : std::next(it);
    }
    if (part.is_object()) part.erase("$if");
  }
}

// The ticks that an axis must have; none: Vega chooses. Of a logarithmic one few powers of its base, and values between
// powers of 10 if there are few. All integers, if they are few: Vega's tickMinStep = 1 still lets it label 1.5 as "2".
Json ticks(const Axis& axis, Range range) {
  Json ticks = Json::array();
  if (axis.scale == Scale::linear) {
    if (!axis.whole || range.high - range.low > 10) return ticks;
    for (double tick = std::ceil(range.low); tick <= range.high; ++tick) ticks.push_back(tick);
    return ticks;
  }
  const double base = axis.scale == Scale::log2 ? 2 : 10;
  const double first = std::floor(std::log(range.low) / std::log(base));
  const double last = std::ceil(std::log(range.high) / std::log(base));
  const double stride = std::max(1.0, std::ceil((last - first) / 8));
  for (double power = first; power <= last; power += stride) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && (base == 2 || last - first > 3)) continue;
      const double tick = factor * std::pow(base, power);
      if (tick >= range.low * 0.999 && tick <= range.high * 1.001) ticks.push_back(tick);
    }
  }
  return ticks;
}

// A channel for a field of numbers; without a range, Vega takes that of its values.
Json channel_of(const char* field, const Axis& axis, Range range = {}) {
  constexpr const char* kScales[] = {"linear", "log2", "log10"};
  const Json kinds = json_of("axes");
  Json channel = kinds.at("every");
  channel["field"] = field;
  channel["title"] = axis.title;
  channel.merge_patch(kinds.at(kScales[static_cast<std::size_t>(axis.scale)]));
  if (axis.whole) channel.merge_patch(kinds.at("whole"));
  if (axis.bytes) channel.merge_patch(kinds.at("bytes"));
  if (range.low > range.high) return channel;
  channel["scale"]["domainMin"] = range.low;
  channel["scale"]["domainMax"] = range.high;
  if (Json values = ticks(axis, range); !values.empty()) channel["axis"]["values"] = std::move(values);
  return channel;
}

// The legend of a category, if it has several names: with as many columns as fit on a phone, each as wide as its widest
// name.
Json legend_of(const std::vector<std::string>& names) {
  constexpr double kPhone = 340, kLetter = 6.6, kSymbol = 26;  // pixels
  for (std::size_t columns = names.size(); columns > 1; --columns) {
    std::vector<double> widths(columns);
    for (std::size_t i = 0; i < names.size(); ++i) {
      double& width = widths[i % columns];
      width = std::max(width, kSymbol + kLetter * static_cast<double>(names[i].size()));
    }
    if (std::accumulate(widths.begin(), widths.end(), 0.0) <= kPhone) return {{"columns", columns}};
  }
  return names.size() > 1 ? Json{{"columns", 1}} : Json();
}

template <class Series>
std::vector<std::string> names_of(const std::vector<Series>& all) {
  return tools::each(all, &Series::name);
}

// The titles of columns: one series may have the title of the axis instead of its name.
template <class Series>
std::vector<std::string> titles_of(const std::vector<Series>& all, const std::string& title) {
  return all.size() == 1 ? std::vector<std::string>{title} : names_of(all);
}

// A chart as its specification, and its figures as a table.
struct Shown {
  Json spec;
  console::Table table;

  // `names`: of its colours.
  Shown(const char* file, Json given, const std::vector<std::string>& names, Json values, console::Table figures)
      : spec(json_of(file)), table(std::move(figures)) {
    given["names"] = names;
    given.emplace("legend", legend_of(names));
    fill_in(spec, given);
    spec["data"]["values"] = std::move(values);
  }
};

Shown show(const Bars& bars) {
  console::Table table = table_with({""}, titles_of(bars.series, bars.value.title));
  Json values = Json::array();
  const double largest = largest_in(bars);
  Range range{0, 0};
  bool has_intervals = false;
  for (std::size_t group = 0; group < bars.groups.size(); ++group) {
    std::vector<std::string> row = {bars.groups[group]};
    for (const BarSeries& series : bars.series) {
      const double value = series.values.at(group);
      row.push_back(figure(value, largest));
      if (!std::isfinite(value)) continue;
      range.include(value);
      values.push_back({{"group", bars.groups[group]}, {"series", series.name}, {"value", value}});
      if (!series.low.empty()) {
        const double low = series.low.at(group), high = series.high.at(group);
        range.include(low);
        range.include(high);
        has_intervals = has_intervals || low < high;
        values.back().update({{"low", low}, {"high", high}});
        // The figure stands at the end of the whisker, so it says that the whisker is an interval.
        if (low < high) row.back() += " (" + figure(low, largest) + " to " + figure(high, largest) + ")";
      }
      values.back()["text"] = row.back();
    }
    table.row(row);
  }
  if (bars.line) range.include(*bars.line);
  const double stretch = has_intervals ? kStretchForInterval : kStretchForText;
  const bool one = bars.series.size() == 1;  // each bar in its own colour
  return {"bars",
          {{"x", channel_of("value", bars.value, {range.low * stretch, range.high > 0 ? range.high * stretch : 1})},
           {"groups", bars.groups},
           {"colour", one ? "group" : "series"},
           {"legend", legend_of(names_of(bars.series))},
           {"several", !one},
           {"intervals", has_intervals},
           {"line", bars.line ? Json(*bars.line) : Json()},  // Vega warns about layers without values
           {"height", bars.groups.size() * (kRow + kBar * (std::max<std::size_t>(1, bars.series.size()) - 1))}},
          one ? bars.groups : names_of(bars.series),
          std::move(values),
          table};
}

Shown show(const Shares& shares) {
  const std::vector<std::string> names = names_of(shares.series);
  console::Table table = table_with({"per cent"}, names);
  Json values = Json::array();
  for (std::size_t group = 0; group < shares.groups.size(); ++group) {
    double sum = 0;
    for (const BarSeries& one : shares.series) sum += std::isfinite(one.values.at(group)) ? one.values[group] : 0;
    std::vector<std::string> row = {shares.groups[group]};
    for (const BarSeries& one : shares.series) {
      const double value = one.values[group], share = value / sum;
      row.push_back(std::isfinite(share) ? fmt::format("{:.1f}", 100 * share) : "-");
      if (value > 0)
        values.push_back({{"group", row[0]}, {"series", one.name}, {"place", row.size() - 2}, {"value", value}});
    }
    table.row(row);
  }
  return {
      "shares", {{"groups", shares.groups}, {"height", shares.groups.size() * kRow}}, names, std::move(values), table};
}

// A logarithm needs positive numbers.
bool can_be_shown(double value, const Axis& axis) {
  return std::isfinite(value) && (axis.scale == Scale::linear || value > 0);
}

// The table has one row for each x of any series.
Shown show(const Lines& lines) {
  std::vector<std::string> titles = titles_of(lines.series, lines.y.title), measured;
  titles.insert(titles.begin(), lines.x.title);
  Json values = Json::array();
  Range xs, ys;
  std::size_t most = 0;  // points of a line
  std::map<double, std::vector<std::string>> rows;
  for (std::size_t i = 0; i < lines.series.size(); ++i) {
    const LineSeries& series = lines.series[i];
    if (!series.ideal) measured.push_back(series.name);
    most = std::max(most, series.points.size());
    for (const Point point : series.points) {
      const std::string at = lines.x.bytes ? console::human_bytes(std::llround(point.x)) : figure(point.x);
      std::vector<std::string>& row = rows.try_emplace(point.x, titles.size(), "-").first->second;
      row[0] = at;
      if (row[i + 1] == "-") row[i + 1] = figure(point.y);
      if (!can_be_shown(point.x, lines.x) || !can_be_shown(point.y, lines.y)) continue;
      xs.include(point.x);
      ys.include(point.y);
      values.push_back(
          {{"series", series.name}, {"x", point.x}, {"y", point.y}, {"at", at}, {"text", figure(point.y)}});
      if (series.ideal) values.back()["ideal"] = true;
    }
  }
  console::Table table = table_with({}, titles);
  for (const auto& [x, row] : rows) table.row(row);
  if (lines.from_zero) ys.include(0);
  const double margin = lines.y.scale == Scale::linear ? (ys.high - ys.low) * kMargin : 0;
  const bool marked = most <= kMostMarked;
  Json legend = legend_of(measured);
  if (marked && !legend.is_null()) legend["symbolStrokeWidth"] = 0;  // dashes would cut pieces from the marks
  return {"lines",
          {{"x", channel_of("x", lines.x, xs)},
           {"y", channel_of("y", lines.y, {lines.from_zero ? ys.low : ys.low - margin, ys.high + margin})},
           {"ideal", measured.size() < lines.series.size()},
           {"marked", marked},
           {"width", marked ? 2 : 1},
           {"legend", legend}},
          measured,
          std::move(values),
          table};
}

Shown show(const Histogram& histogram) {
  console::Table table = table_with({histogram.x.title}, {"values", "min", "median", "p95", "p99", "max"});
  Json values = Json::array();
  std::vector<double> all;
  const auto is_finite = [](double value) { return std::isfinite(value); };
  for (const BarSeries& series : histogram.series)
    std::ranges::copy_if(series.values, std::back_inserter(all), is_finite);
  const double low = all.empty() ? 0 : std::ranges::min(all);
  const double high = all.empty() ? 0 : tools::quantile(all, kCovered);
  const bool spread = high > low;
  const std::size_t bins = spread || all.empty() ? kBins : 1;
  const double width = spread ? (high - low) / (kBins - 1) : all.empty() ? 1 : std::max(1e-9, low / 100);
  for (const BarSeries& series : histogram.series) {
    std::vector<std::string> row = {series.name, console::human_count(static_cast<int64_t>(series.values.size()))};
    for (const double share : {0.0, 0.5, 0.95, 0.99, 1.0}) row.push_back(figure(tools::quantile(series.values, share)));
    table.row(row);
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
  return {"histogram", {{"x", channel_of("begin", histogram.x)}}, names_of(histogram.series), std::move(values), table};
}

Shown show(const Timeline& timeline) {
  console::Table table = table_with({"", "span"}, {"from", "to", timeline.time.title});
  Json values = Json::array();
  std::vector<std::string> kinds;
  for (const Span& span : timeline.spans) {
    if (std::ranges::find(kinds, span.kind) == kinds.end()) kinds.push_back(span.kind);
    const std::string &lane = timeline.lanes.at(span.lane), took = figure(span.end - span.begin);
    table.row({lane, span.label, figure(span.begin), figure(span.end), took});
    values.push_back({{"lane", lane},
                      {"kind", span.kind},
                      {"label", span.label},
                      {"begin", span.begin},
                      {"end", span.end},
                      {"took", took}});
  }
  return {
      "timeline",
      {{"x", channel_of("begin", timeline.time)}, {"lanes", timeline.lanes}, {"height", timeline.lanes.size() * kLane}},
      kinds,
      std::move(values),
      table};
}

Shown show(const Content& content) {
  return std::visit([](const auto& one) { return show(one); }, content);
}

}  // namespace

std::string vega_lite(const Chart& chart) {
  Json spec = json_of("frame");
  spec["description"] = chart.title;
  spec.update(show(chart.content).spec);
  return spec.dump(-1, ' ', false, Json::error_handler_t::replace);
}

console::Table table_of(const Chart& chart) {
  return chart.table ? *chart.table : show(chart.content).table;
}

}  // namespace ddprun::report
