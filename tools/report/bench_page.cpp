#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "ddprun/error.hpp"
#include "tools/lib/statistics.hpp"
#include "tools/report/report.hpp"

namespace ddprun::report {
namespace {

using nlohmann::json;

struct Measured {
  std::string method;                      // "gloo ring"
  std::array<std::string, 4> variants;     // device, buffer, place, file
  double size = 0, median = 0, busbw = 0;  // bytes, seconds, bytes per second
};

using Cases = std::map<std::pair<std::string, int64_t>, std::vector<Measured>>;  // by collective and ranks

// Adds the rows of a file, and returns its environment.
TitledTable read(const std::string& path, Cases& cases) {
  const std::string text = read_text(path);
  try {
    const json written = json::parse(text);
    written.at("ddprun_bench");
    const std::string name = std::filesystem::path(path).filename().string();
    for (const json& row : written.at("rows")) {
      cases[{row.at("collective"), row.at("ranks")}].push_back(
          {row.at("backend").get<std::string>() + " " + row.at("algorithm").get<std::string>(),
           {row.value("device", "cpu"),  // the default for files of older versions
            row.at("buffer"), row.at("in_place").get<bool>() ? "in place" : "out of place", name},
           row.at("size"),
           row.at("median"),
           row.at("busbw")});
    }
    console::Table table = table_with({"", ""}, {});
    for (const auto& [key, value] : written.at("environment").get_ref<const json::object_t&>())
      table.row({key, value.is_string() ? value.get<std::string>() : value.dump()});
    return {name, table};
  } catch (const json::exception& error) {
    throw Error(ExitCode::usage,
                path + ": neither the folder of a run nor a file of `ddprun bench --json`: " + error.what());
  }
}

// Each with only what distinguishes the rows: "gloo ring", "gloo ring, in place".
std::vector<std::string> distinct_names(const std::vector<Measured>& rows) {
  std::vector<std::string> names = tools::each(rows, &Measured::method);
  for (std::size_t i = 0; i < rows.front().variants.size(); ++i) {
    const auto differs = [&](const Measured& row) { return row.variants[i] != rows.front().variants[i]; };
    if (std::ranges::none_of(rows, differs)) continue;
    for (std::size_t row = 0; row < rows.size(); ++row) names[row] += ", " + rows[row].variants[i];
  }
  return names;
}

Chart chart_over_size(const std::string& title, const std::vector<Measured>& rows, const Axis& axis, double factor,
                      double Measured::*member) {
  Lines lines;
  lines.x = {"message size", Scale::log2, false, true};
  lines.y = axis;
  const std::vector<std::string> names = distinct_names(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto line = std::ranges::find(lines.series, names[i], &LineSeries::name);
    if (line == lines.series.end()) line = lines.series.insert(line, {names[i], {}});
    line->points.push_back({rows[i].size, rows[i].*member * factor});
  }
  return half_chart(title, "", lines);
}

Section section_of(const std::string& title, std::vector<Measured> rows) {
  std::ranges::stable_sort(rows, {}, &Measured::size);
  const Unit rate = unit_of_bytes_per_second(std::ranges::max_element(rows, {}, &Measured::busbw)->busbw);
  return {title,
          {},
          {},
          {chart_over_size("Bandwidth", rows, {fmt::format("busbw ({})", rate.name), Scale::log10}, rate.factor,
                           &Measured::busbw),
           chart_over_size("Time", rows, {"median time (us)", Scale::log10}, 1e6, &Measured::median)}};
}

}  // namespace

Page bench_page(const std::vector<std::string>& paths) {
  Cases cases;
  Section environments{"Versions and machine", {}, {}, {}};
  for (const std::string& path : paths) environments.tables.push_back(read(path, cases));
  Page page;
  page.title = "Collectives";
  page.paragraphs = {"Bandwidth and time of one call over the size of its message; busbw as nccl-tests counts it."};
  for (const auto& [what, rows] : cases)
    page.sections.push_back(section_of(fmt::format("{}, {} ranks", what.first, what.second), rows));
  page.sections.push_back(environments);
  return page;
}

}  // namespace ddprun::report
