// The common steps from all kinds of charts to Vega-Lite. Only for chart_*.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/report/chart.hpp"

namespace ddprun::report::vega {

using Json = nlohmann::ordered_json;

// What differs between charts; the rest of the specification is the same for all.
struct View {
  Json layers = Json::array();
  std::size_t height = 240;  // pixels
};

View view_of(const Bars& bars);
View view_of(const Shares& shares);
View view_of(const Lines& lines);
View view_of(const Histogram& histogram);
View view_of(const Timeline& timeline);

// One layer: `values` are an array of flat objects.
Json layer(Json values, Json mark, Json encoding);
Json field(const std::string& name, const std::string& type);
// A category's channel, in the order of `names`; with a legend above the chart, or none.
Json colour(const std::string& field, const std::vector<std::string>& names, bool legend);
Json tooltip(const std::vector<std::pair<std::string, std::string>>& fields_and_titles);
// A quantitative channel over [low, high].
Json measure(const std::string& field, const Axis& axis, double low, double high);

std::vector<std::string> names_of(const std::vector<BarSeries>& series);

// Throws std::logic_error unless each series has one value per group.
void expect_values(const std::vector<std::string>& groups, const std::vector<BarSeries>& series);

}  // namespace ddprun::report::vega
