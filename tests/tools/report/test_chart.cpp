#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/report/chart.hpp"
#include "tools/report/some_page.hpp"

using namespace ddprun;
using namespace ddprun::report;
using nlohmann::json;

namespace {

json spec_of(const Content& content) {
  return json::parse(vega_lite(whole_chart("a title", "a note", content)));
}

json values_of(const Content& content) {
  return spec_of(content)["data"]["values"];
}

Bars two_bars() {
  Bars bars;
  bars.value.title = "time (ms)";
  bars.groups = {"a", "b"};
  bars.series.push_back({"", {12.3456, 7}, {}, {}});
  return bars;
}

std::vector<std::string> row(const console::Table& table, std::size_t at) {
  return table.rows().at(at);
}

using Row = std::vector<std::string>;

}  // namespace

TEST_CASE("figures have four significant digits") {
  CHECK(figure(0) == "0");
  CHECK(figure(2) == "2");
  CHECK(figure(-2) == "-2");
  CHECK(figure(0.0622) == "0.06220");
  CHECK(figure(25.74) == "25.74");
  CHECK(figure(9.99996) == "10.00");
  CHECK(figure(999.94) == "999.9");
  CHECK(figure(999.96) == "1,000");
  CHECK(figure(-61234.4) == "-61,234");
  CHECK(figure(0.00001234) == "1.234e-05");
  CHECK(figure(1e300) == "1.000e+300");
  CHECK(figure(NAN) == "-");
  CHECK(figure(INFINITY) == "-");
}

TEST_CASE("next to a larger figure, a figure has as many decimals") {
  CHECK(figure(0.003897, 0.6072) == "0.0039");
  CHECK(figure(0.6072, 0.6072) == "0.6072");
  CHECK(figure(0.05, 25.74) == "0.05");
  CHECK(figure(3, 25.74) == "3");
  CHECK(figure(0, 25.74) == "0");
  CHECK(figure(0.5, 1234) == "0.5000");
  CHECK(figure(NAN, 1) == "-");
}

TEST_CASE("units make the largest value readable") {
  CHECK(unit_of_seconds(2).name == "s");
  CHECK(unit_of_seconds(0.5).name == "ms");
  CHECK(unit_of_seconds(0.5).factor == doctest::Approx(1e3));
  CHECK(unit_of_seconds(5e-5).name == "us");
  CHECK(unit_of_seconds(0).name == "ns");
  CHECK(unit_of_bytes_per_second(2.5e9).name == "GB/s");
  CHECK(unit_of_bytes_per_second(1).name == "kB/s");
}

TEST_CASE("a bar has a value label, and a NaN has no bar") {
  Bars bars = two_bars();
  bars.series[0].values[1] = NAN;
  const json spec = spec_of(bars), values = values_of(bars);
  REQUIRE(values.size() == 1);
  CHECK(values[0]["text"] == "12.35");
  CHECK(values[0]["value"] == 12.3456);
  CHECK(spec["encoding"]["x"]["title"] == "time (ms)");
  CHECK(spec["encoding"]["y"]["scale"]["domain"] == json{"a", "b"});
  CHECK(spec["description"] == "a title");
}

TEST_CASE("the axis of bars starts at 0, or below for negative values, with space for labels") {
  Bars bars = two_bars();
  const auto domain = [&] { return spec_of(bars)["encoding"]["x"]["scale"]; };
  CHECK(domain()["domainMin"] == 0);
  CHECK(domain()["domainMax"] > 1.2 * 12.3456);
  bars.series[0].values[1] = -3;
  CHECK(domain()["domainMin"] < -3);
  bars.series[0].values = {NAN, 0};
  CHECK(domain()["domainMax"] == 1);
}

TEST_CASE("intervals and a line are within the axis") {
  Bars bars = two_bars();
  bars.series[0].low = {12, 6};
  bars.series[0].high = {13, 80};
  bars.line = 90;
  const json spec = spec_of(bars);
  CHECK(values_of(bars)[0]["text"] == "12.35 (12 to 13)");
  CHECK(values_of(bars)[1]["high"] == 80);
  CHECK(spec["layer"][2]["data"]["values"][0]["value"] == 90);
  CHECK(spec["encoding"]["x"]["scale"]["domainMax"] > 90);
  CHECK(row(table_of(whole_chart("", "", bars)), 1) == Row{"b", "7 (6 to 80)"});
}

TEST_CASE("a series with too few values, and a span on an invalid lane, are logic errors") {
  Bars bars = two_bars();
  bars.series[0].values.pop_back();
  CHECK_THROWS_AS(spec_of(bars), std::logic_error);
  Timeline timeline = testing::some_timeline();
  CHECK(row(table_of(whole_chart("", "", timeline)), 3) ==
        Row{"rank 0: buckets", "bucket 0, 25.0 MiB", "7.500", "9.700", "2.200"});
  timeline.spans[0].lane = timeline.lanes.size();
  CHECK_THROWS_AS(spec_of(timeline), std::logic_error);
}

TEST_CASE("shares are the parts in per cent") {
  Shares shares{{"a", "b"}, {}};
  shares.series.push_back({"one", {1, 0}, {}, {}});
  shares.series.push_back({"two", {3, NAN}, {}, {}});
  CHECK(values_of(shares).size() == 2);  // Vega divides by their sum
  CHECK(spec_of(shares)["encoding"]["y"]["scale"]["domain"] == json{"a", "b"});
  CHECK(row(table_of(whole_chart("", "", shares)), 0) == Row{"a", "25.0", "75.0"});
  CHECK(row(table_of(whole_chart("", "", shares)), 1) == Row{"b", "-", "-"});
}

TEST_CASE("a logarithmic axis has ticks at few powers, and shows only positive points") {
  Lines lines{{"size", Scale::log2, false, true}, {"rate", Scale::log10}, {}, false};
  lines.series.push_back({"a", {{0, 1}, {4, 1e-4}, {8, NAN}, {16, 0}, {1 << 30, 10}}, false});
  CHECK(values_of(lines).size() == 2);
  const json encoding = spec_of(lines)["encoding"];
  CHECK(encoding["x"]["axis"]["values"].size() <= 9);
  CHECK(encoding["x"]["axis"]["values"].front() == 4);
  CHECK(encoding["y"]["axis"]["values"].size() == 6);
  lines.series[0].points = {{4, 1.5}, {8, 30}};
  CHECK(spec_of(lines)["encoding"]["y"]["axis"]["values"] == json{2, 5, 10, 20});
}

TEST_CASE("an axis of epochs has only integer ticks") {
  const Lines lines{{"epoch", Scale::linear, true}, {"loss"}, {testing::line_of("a", {3, 2})}, false};
  CHECK(spec_of(lines)["encoding"]["x"]["axis"]["values"] == json{1, 2});
  const Lines many{{"step", Scale::linear, true}, {"loss"}, {testing::line_of("a", std::vector<double>(500))}, false};
  CHECK_FALSE(spec_of(many)["encoding"]["x"]["axis"].contains("values"));
}

TEST_CASE("only short lines have marks, and an ideal line has no legend entry") {
  Lines lines{{"ranks"}, {"rate"}, {testing::line_of("a", {1, 2, 3}), testing::line_of("b", {1, 2, 3})}, true};
  lines.series.push_back({"ideal", {{1, 1}, {3, 3}}, true});
  const json measured = spec_of(lines)["layer"].back();
  CHECK(measured["encoding"]["color"]["scale"]["domain"] == json{"a", "b"});
  CHECK(measured["layer"].size() == 2);
  CHECK(spec_of(lines)["layer"].size() == 3);
  CHECK(values_of(lines).back()["ideal"] == true);
  CHECK(row(table_of(whole_chart("", "", lines)), 1) == Row{"2", "2", "2", "-"});
  lines.series.push_back(testing::line_of("long", std::vector<double>(61)));
  CHECK(spec_of(lines)["layer"].back()["layer"].size() == 1);
}

TEST_CASE("a histogram's bins hold all values of a series, outliers in the last bin") {
  Histogram histogram{{"time (ms)"}, {}};
  std::vector<double> times = testing::some_times(10, 3);
  times.push_back(1e300);
  histogram.series.push_back({"a", times, {}, {}});
  histogram.series.push_back({"b", {}, {}, {}});
  double sum = 0;
  for (const json& bin : values_of(histogram)) sum += bin["share"].get<double>();
  CHECK(sum == doctest::Approx(100));
  for (const json& bin : values_of(histogram)) CHECK(bin["begin"] < 100);
  CHECK(row(table_of(whole_chart("", "", histogram)), 0).back() == "1.000e+300");
}

TEST_CASE("equal samples are one bin, and no samples are none") {
  Histogram histogram{{"time (ms)"}, {}};
  histogram.series.push_back({"a", {3, 3, 3}, {}, {}});
  const json values = values_of(histogram);
  REQUIRE(values.size() == 2);
  CHECK(values[0]["share"] == 100);
  CHECK(values[0]["begin"] < values[1]["begin"]);
  histogram.series[0].values.clear();
  CHECK(values_of(histogram).empty());
}

TEST_CASE("invalid UTF-8 is replaced, not refused") {
  Bars bars = two_bars();
  bars.groups[0] = "\xff\xfe";
  CHECK(values_of(bars)[0]["group"] == "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_CASE("a legend has only columns that fit on a phone") {
  const auto columns = [](const std::vector<std::string>& names) {
    Lines lines{{"x"}, {"y"}, {}, false};
    for (const std::string& name : names) lines.series.push_back(testing::line_of(name, {1, 2}));
    return spec_of(lines)["layer"].back()["encoding"]["color"]["legend"]["columns"].get<int>();
  };
  CHECK(columns({"gloo", "ucx"}) == 2);
  CHECK(columns({std::string(30, 'a'), "b"}) == 2);
  CHECK(columns({std::string(30, 'a'), std::string(30, 'b')}) == 1);
  CHECK(columns({"data wait", "forward", "backward", "exposed communication", "optimizer", "other"}) == 3);
}
