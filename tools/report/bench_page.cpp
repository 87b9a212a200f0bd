#include "tools/report/bench_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "ddprun/error.hpp"

namespace ddprun::report {
namespace {

using nlohmann::json;

struct Measured {
  std::string collective, backend, algorithm, device, buffer, place, file;
  int64_t ranks = 0;
  double size = 0, median = 0, busbw = 0;  // bytes, seconds, bytes per second
};

struct Results {
  std::vector<Measured> rows;
  std::vector<std::pair<std::string, std::map<std::string, std::string>>> environments;  // by file
};

Measured measured(const json& row) {
  Measured one;
  row.at("collective").get_to(one.collective);
  row.at("backend").get_to(one.backend);
  row.at("algorithm").get_to(one.algorithm);
  one.device = row.value("device", "cpu");  // the default for files of older versions
  row.at("buffer").get_to(one.buffer);
  one.place = row.at("in_place").get<bool>() ? "in place" : "out of place";
  row.at("ranks").get_to(one.ranks);
  row.at("size").get_to(one.size);
  row.at("median").get_to(one.median);
  row.at("busbw").get_to(one.busbw);
  return one;
}

void read(const std::string& path, Results& results) {
  std::ifstream file(path);
  if (!file) {
    throw Error(ExitCode::usage, "cannot read " + path + ": " + std::generic_category().message(errno));
  }
  try {
    const json written = json::parse(file);
    written.at("ddprun_bench");
    const std::string name = std::filesystem::path(path).filename().string();
    for (const json& row : written.at("rows")) {
      results.rows.push_back(measured(row));
      results.rows.back().file = name;
    }
    results.environments.push_back({name, {}});
    for (const auto& [key, value] : written.at("environment").items()) {
      results.environments.back().second[key] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  } catch (const json::exception& error) {
    throw Error(ExitCode::usage,
                path + ": neither the folder of a run nor a file of `ddprun bench --json`: " + error.what());
  }
}

// A name with only what distinguishes the rows: "gloo ring", "gloo ring, in place".
class Names {
 public:
  explicit Names(const std::vector<Measured>& rows) {
    for (const Measured& row : rows) {
      files_.insert(row.file);
      devices_.insert(row.device);
      buffers_.insert(row.buffer);
      places_.insert(row.place);
    }
  }

  std::string of(const Measured& row) const {
    std::string name = row.backend + " " + row.algorithm;
    const auto add = [&](const std::set<std::string>& all, const std::string& one) {
      if (all.size() > 1) name += ", " + one;
    };
    add(devices_, row.device);
    add(buffers_, row.buffer);
    add(places_, row.place);
    add(files_, row.file);
    return name;
  }

 private:
  std::set<std::string> files_, devices_, buffers_, places_;
};

Chart chart_over_size(const std::string& title, const std::vector<Measured>& rows, const Names& names, const Axis& axis,
                      double factor, double Measured::*member) {
  Lines lines;
  lines.x = {"message size", Scale::log2, false, true};
  lines.y = axis;
  std::map<std::string, std::size_t> places;
  for (const Measured& row : rows) {
    const auto [place, is_new] = places.try_emplace(names.of(row), lines.series.size());
    if (is_new) lines.series.push_back({place->first, {}, false});
    lines.series[place->second].points.push_back({row.size, row.*member * factor});
  }
  return half_chart(title, "", lines);
}

double largest(const std::vector<Measured>& rows, double Measured::*member) {
  double most = 0;
  for (const Measured& row : rows) most = std::max(most, row.*member);
  return most;
}

Section section_of(const std::string& title, std::vector<Measured> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Measured& a, const Measured& b) { return a.size < b.size; });
  const Names names(rows);
  const Unit rate = unit_of_bytes_per_second(largest(rows, &Measured::busbw));
  Section section{title, {}, {}, {}};
  section.charts.push_back(chart_over_size(
      "Bandwidth", rows, names, {fmt::format("busbw ({})", rate.name), Scale::log10}, rate.factor, &Measured::busbw));
  section.charts.push_back(
      chart_over_size("Time", rows, names, {"median time (us)", Scale::log10}, 1e6, &Measured::median));
  return section;
}

Section environment(const Results& results) {
  Section section{"Versions and machine", {}, {}, {}};
  for (const auto& [file, values] : results.environments) {
    console::Table table({{""}, {""}});
    for (const auto& [key, value] : values) table.row({key, value});
    section.tables.push_back({file, table});
  }
  return section;
}

}  // namespace

Page bench_page(const std::vector<std::string>& paths) {
  Results results;
  for (const std::string& path : paths) read(path, results);
  std::map<std::pair<std::string, int64_t>, std::vector<Measured>> cases;
  for (const Measured& row : results.rows) cases[{row.collective, row.ranks}].push_back(row);
  Page page;
  page.title = "Collectives";
  page.paragraphs = {"Bandwidth and time of one call over the size of its message; busbw as nccl-tests counts it."};
  for (const auto& [what, rows] : cases) {
    page.sections.push_back(section_of(fmt::format("{}, {} ranks", what.first, what.second), rows));
  }
  page.sections.push_back(environment(results));
  return page;
}

}  // namespace ddprun::report
