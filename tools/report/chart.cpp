#include "tools/report/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "cli/console/units.hpp"
#include "tools/report/vega.hpp"

namespace ddprun::report {
namespace vega {
namespace {

// Tick labels of a size: 64 KiB.
constexpr const char* kBytesLabel =
    "datum.value >= 1073741824 ? datum.value / 1073741824 + ' GiB' : datum.value >= 1048576 ? datum.value / 1048576 + "
    "' MiB' : datum.value >= 1024 ? datum.value / 1024 + ' KiB' : datum.value + ' B'";

// The width in pixels of a legend with this number of columns, each as wide as its widest name.
double width_of(const std::vector<std::string>& names, std::size_t columns) {
  constexpr double kLetter = 6.6, kSymbol = 26;
  std::vector<double> widths(columns);
  for (std::size_t i = 0; i < names.size(); ++i) {
    double& width = widths[i % columns];
    width = std::max(width, kSymbol + kLetter * static_cast<double>(names[i].size()));
  }
  return std::accumulate(widths.begin(), widths.end(), 0.0);
}

// The number of legend columns that fit on a phone.
std::size_t columns_of(const std::vector<std::string>& names) {
  constexpr double kPhone = 340;
  std::size_t columns = std::max<std::size_t>(names.size(), 1);
  while (columns > 1 && width_of(names, columns) > kPhone) --columns;
  return columns;
}

// All integers, if they are few.
Json whole_marks(double low, double high) {
  constexpr double kMost = 10;
  Json marks = Json::array();
  for (double mark = std::ceil(low); high - low <= kMost && mark <= high; ++mark) marks.push_back(mark);
  return marks;
}

// The ticks of a logarithmic axis: powers of the base, and values between powers of 10 if there are few.
Json marks_between(double low, double high, Scale scale) {
  constexpr double kMost = 8;
  const double base = scale == Scale::log2 ? 2 : 10;
  const double first = std::floor(std::log(low) / std::log(base)), last = std::ceil(std::log(high) / std::log(base));
  const double stride = std::max(1.0, std::ceil((last - first) / kMost));
  Json marks = Json::array();
  for (double power = first; power <= last; power += stride) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && (scale == Scale::log2 || last - first > 3)) continue;
      const double mark = factor * std::pow(base, power);
      if (mark >= low * 0.999 && mark <= high * 1.001) marks.push_back(mark);
    }
  }
  return marks;
}

const char* name_of(Scale scale) {
  return scale == Scale::linear ? "linear" : "log";
}

}  // namespace

Json layer(Json values, Json mark, Json encoding) {
  return {{"data", {{"values", std::move(values)}}}, {"mark", std::move(mark)}, {"encoding", std::move(encoding)}};
}

Json field(const std::string& name, const std::string& type) {
  return {{"field", name}, {"type", type}};
}

Json colour(const std::string& name, const std::vector<std::string>& names, bool legend) {
  Json channel = field(name, "nominal");
  channel["title"] = nullptr;
  channel["scale"] = {{"domain", names}};
  channel["legend"] = legend ? Json{{"columns", columns_of(names)}} : Json();
  return channel;
}

Json tooltip(const std::vector<std::pair<std::string, std::string>>& fields_and_titles) {
  Json fields = Json::array();
  for (const auto& [name, title] : fields_and_titles) {
    fields.push_back({{"field", name}, {"type", "nominal"}, {"title", title.empty() ? name : title}});
  }
  return fields;
}

Json measure(const std::string& name, const Axis& axis, double low, double high) {
  Json channel = field(name, "quantitative");
  channel["title"] = axis.title;
  Json scale = {{"type", name_of(axis.scale)}, {"nice", false}};
  if (axis.scale == Scale::linear) scale["zero"] = false;
  if (axis.scale == Scale::log2) scale["base"] = 2;
  if (std::isfinite(low)) scale["domainMin"] = low;
  if (std::isfinite(high)) scale["domainMax"] = high;
  channel["scale"] = scale;
  Json marks = {{"labelOverlap", "greedy"}, {"tickCount", 6}};
  if (axis.whole) {
    marks["format"] = ",d";
    if (Json whole = whole_marks(low, high); !whole.empty()) marks["values"] = std::move(whole);
  }
  if (axis.scale != Scale::linear) marks["values"] = marks_between(low, high, axis.scale);
  if (axis.bytes) marks["labelExpr"] = kBytesLabel;
  channel["axis"] = marks;
  return channel;
}

std::vector<std::string> names_of(const std::vector<BarSeries>& series) {
  std::vector<std::string> names;
  for (const BarSeries& one : series) names.push_back(one.name);
  return names;
}

void expect_values(const std::vector<std::string>& groups, const std::vector<BarSeries>& series) {
  for (const BarSeries& one : series) {
    const auto fits = [&](const std::vector<double>& values) { return values.size() == groups.size(); };
    if (fits(one.values) && (one.low.empty() || fits(one.low)) && one.low.size() == one.high.size()) continue;
    throw std::logic_error("chart series \"" + one.name + "\" has another number of values than there are groups");
  }
}

}  // namespace vega

Chart whole_chart(std::string title, std::string note, Content content) {
  Chart chart;
  chart.title = std::move(title);
  chart.note = std::move(note);
  chart.content = std::move(content);
  return chart;
}

Chart half_chart(std::string title, std::string note, Content content) {
  Chart chart = whole_chart(std::move(title), std::move(note), std::move(content));
  chart.half = true;
  return chart;
}

std::string vega_lite(const Chart& chart) {
  const vega::View view = std::visit([](const auto& content) { return vega::view_of(content); }, chart.content);
  vega::Json spec = {{"$schema", "https://vega.github.io/schema/vega-lite/v6.json"},
                     {"description", chart.title},
                     {"usermeta", {{"note", chart.note}}},
                     {"width", "container"},
                     {"autosize", {{"type", "fit-x"}, {"contains", "padding"}}}};
  spec["padding"] = {{"left", 0}, {"right", 14}, {"top", 4}, {"bottom", 4}};  // half a tick label at the end of an axis
  spec["height"] = view.height;
  spec["layer"] = view.layers;
  return spec.dump(-1, ' ', false, vega::Json::error_handler_t::replace);
}

std::string standalone(const std::string& specification, int width) {
  vega::Json spec = vega::Json::parse(specification);
  spec["title"]["text"] = spec.at("description");
  if (const vega::Json& note = spec.at("usermeta").at("note"); note != "") spec["title"]["subtitle"] = note;
  spec["width"] = width;
  spec["padding"] = 16;
  spec.erase("autosize");
  return spec.dump();
}

}  // namespace ddprun::report
