#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/error_of.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "support/variable.hpp"
#include "tools/report/report.hpp"
#include "tools/report/some_page.hpp"
#include "tools/report/some_run.hpp"

using namespace ddprun;
using nlohmann::json;
using testing::contains;
using testing::error_of;
using Row = std::vector<std::string>;
namespace fs = std::filesystem;

namespace {

json bench_row(const std::string& backend, int size, double median, bool in_place = false) {
  return {{"collective", "allreduce"}, {"ranks", 2},         {"size", size},     {"backend", backend},
          {"algorithm", "ring"},       {"buffer", "malloc"}, {"median", median}, {"busbw", size / median},
          {"in_place", in_place}};
}

std::string write_bench(const testing::TempDir& folder, const std::string& name, const std::vector<json>& rows) {
  return folder.write(
      name, json{{"ddprun_bench", 1}, {"environment", {{"host", "here"}, {"cores", 2}}}, {"rows", rows}}.dump());
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("lines of bench results are named by what distinguishes them") {
  const testing::TempDir folder;
  json on_gpu = bench_row("gloo", 4, 1e-6);
  on_gpu["device"] = "cuda";  // files without a device are CPU results
  const std::string one =
      write_bench(folder, "one.json", {bench_row("gloo", 4, 1e-6), bench_row("gloo", 4, 1e-6, true), on_gpu});
  const std::string two = write_bench(folder, "two.json", {bench_row("gloo", 4, 1e-6)});
  const report::Page page = report::bench_page({one, two});
  const auto& lines = std::get<report::Lines>(page.sections[0].charts[0].content);
  REQUIRE(lines.series.size() == 4);
  CHECK(lines.series[1].name == "gloo ring, cpu, in place, one.json");
  CHECK(lines.series[2].name == "gloo ring, cuda, out of place, one.json");
}

TEST_CASE("an invalid, missing or mixed input is an error with the path") {
  const testing::TempDir folder;
  for (const char* text : {"", "{}", "[1]", R"({"ddprun_bench": 1, "rows": [{}], "environment": {}})"}) {
    const std::string path = folder.write("b.json", text);
    CHECK_MESSAGE(contains(error_of([&] { report::page_of({path}); }), "2: " + path + ": neither"), text);
  }
  CHECK(error_of([&] { report::page_of({"/nowhere"}); }) == "2: /nowhere: no such file or folder");
  const std::string run = write_run(folder, "run", {});
  CHECK(contains(error_of([&] { report::page_of({run, folder.write("b.json", "{}")}); }), "not both"));
  CHECK(contains(error_of([&] { report::page_of({folder.path().string()}); }), "no folder of a run"));
}

TEST_CASE("a run that is under way, or was killed, has a page with what is recorded, which says so") {
  const testing::TempDir folder;
  const std::string run = write_run(folder, "run", {});
  folder.write("run/config.toml", "schema_version = 1\n[model]\nname = \"linear\"\n[data]\nname = \"linear\"\n");
  fs::remove(run + "/summary.json");
  const std::string whole = testing::read_file(run + "/steps-rank1.jsonl");
  folder.write("run/steps-rank1.jsonl", whole.substr(0, whole.size() - 9));
  const report::Page killed = report::page_of({run});
  CHECK(killed.notices == Row{"run: the run ended without a summary: its figures go to step 5"});
  CHECK_MESSAGE(killed.paragraphs.at(0).starts_with("run: linear on linear, single, 2 ranks: test accuracy 70.00 %, "),
                killed.paragraphs.at(0));
  CHECK(killed.paragraphs.at(0).ends_with("; the run ended without a summary: its figures go to step 5."));
  CHECK(report::table_of(killed.sections.at(1).charts.at(2)).rows().size() == 5);  // the loss over steps

  const record::Recorder recorder(run, 0);  // which empties the file
  CHECK(report::page_of({run}).notices == Row{"run: the run is under way: no step is recorded yet"});
}

TEST_CASE("the page goes into the one given folder, else here, or to --out") {
  const testing::InTempDir folder;
  const std::string one = write_run(folder, "one", {}), two = write_run(folder, "two", {});
  const auto place = [](std::vector<std::string> paths, const std::string& out) {
    return report::write({std::move(paths), out}, testing::some_page()).at(0);
  };
  CHECK(place({one}, "") == one + "/report.html");
  CHECK(place({one, two}, "") == "report.html");
  CHECK(place({one}, "other.html") == "other.html");
  for (const auto& path : {one + "/report.html", std::string("report.html"), std::string("other.html")}) {
    CHECK(contains(testing::read_file(path), "<!doctype html>"));
  }
  CHECK(error_of([&] { place({one}, two); }) == "2: --out " + two + ": is a folder; name a file in it");
  CHECK(contains(error_of([&] { place({one}, "no/such/page.html"); }),
                 "1: cannot write no/such/page.html: there is no folder no/such"));
}

TEST_CASE("charts are drawn as PNG and SVG into a folder next to the page") {
  const testing::InTempDir folder;
  const auto paths = report::write({{}, "page.html", true, true}, testing::some_page());
  REQUIRE(paths.size() == 1 + 2 * 10);
  CHECK(paths[1] == "page-charts/01-total-time.png");
  CHECK(testing::read_file(paths[1]).starts_with("\x89PNG"));
  const std::string svg = testing::read_file(paths[2]);
  CHECK(svg.starts_with("<svg"));
  CHECK(contains(svg, ">Total time<"));
  CHECK(contains(svg, ">25.74<"));
  CHECK_FALSE(contains(svg, "<script"));
  CHECK(files_in("page-charts") == 20);
}

TEST_CASE("the page of a comparison is drawn, and copied to --out") {
  const testing::InTempDir folder;
  folder.write("compare.json", "{}");
  CHECK(contains(error_of([] { report::make({{"."}, "", false, true}); }), "2: .: has no report.html"));
  report::write_page("report.html", testing::some_page());
  const std::string before = testing::read_file("report.html");
  const auto paths = report::make({{"."}, "", false, true});
  REQUIRE(paths.size() == 11);
  CHECK(paths[0] == "./report.html");
  CHECK(contains(testing::read_file(paths[1]), ">Total time<"));
  CHECK(report::make({{"."}, "copy.html"}) == Row{"copy.html"});
  CHECK(testing::read_file("copy.html") == before);
  CHECK(testing::read_file("report.html") == before);
}

TEST_CASE("if charts cannot be drawn, one line gives advice, and there is no drawing, but the page") {
  const testing::InTempDir folder;
  const auto reason = [](const char* python) {
    const testing::Variable variable("DDPRUN_CHARTS_PYTHON", python);
    return error_of([] { report::write({{}, "page.html", true, false}, testing::some_page()); });
  };
  const std::string absent = reason("/nowhere/python");
  CHECK(contains(absent, "1: cannot draw charts as PNG or SVG: cannot start /nowhere/python: No such file"));
  CHECK(contains(absent, "./ddprun in a clone of ddprun installs what draws them"));
  CHECK_FALSE(contains(absent, "\n"));
  folder.write("python", "#!/bin/sh\necho one >&2\necho \"ModuleNotFoundError: No module\" >&2\nexit 1\n");
  fs::permissions("python", fs::perms::owner_all);
  CHECK(contains(reason("./python"), "./python: ModuleNotFoundError: No module; ./ddprun"));
  CHECK(files_in(".") == 2);
  fs::create_directories("page-charts/02-performance-gain.svg/in-the-way");
  CHECK(contains(error_of([] {
                   report::write({{}, "page.html", false, true}, testing::some_page());
                 }),
                 "02-performance-gain.svg is a folder"));
  CHECK(files_in("page-charts") == 1);
  folder.write("report.html", "<html>");
  folder.write("compare.json", "{}");
  CHECK(contains(error_of([] { report::make({{"."}, "", false, true}); }), "./report.html is not a page of ddprun"));
}
