#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/error_of.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
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
  folder.write("run/config.toml", "[model]\nname = \"linear\"\n[data]\nname = \"linear\"\n");
  fs::remove(run + "/summary.json");
  const std::string whole = testing::read_file(run + "/steps-rank1.jsonl");
  folder.write("run/steps-rank1.jsonl", whole.substr(0, whole.size() - 9));
  const report::Page killed = report::page_of({run});
  CHECK(killed.notices == Row{"run: the run is under way or ended without a summary: its figures go to step 5"});
  CHECK_MESSAGE(killed.paragraphs.at(0).starts_with("run: linear on linear, single, 2 ranks: test accuracy 70.00 %, "),
                killed.paragraphs.at(0));
  CHECK(killed.paragraphs.at(0).ends_with(
      "; the run is under way or ended without a summary: its figures go to step 5."));
  CHECK(report::table_of(killed.sections.at(1).charts.at(2)).rows().size() == 5);  // the loss over steps

  const record::Recorder recorder(run, 0);  // which empties the file
  CHECK(report::page_of({run}).notices ==
        Row{"run: the run is under way or ended without a summary: no step is recorded yet"});
}

TEST_CASE("a page says how many virtual ranks were on how many ranks, and how these have changed") {
  const testing::TempDir folder;
  testing::SomeRun some;
  some.summary.virtual_ranks = 8;
  some.summary.changes = {{19, 40}, {3, 2}, {0.15, 2.3}};
  const report::Page page = report::page_of({write_run(folder, "run", some)});
  CHECK_MESSAGE(contains(page.paragraphs.at(0), ", 8 virtual ranks on 2 ranks: "), page.paragraphs.at(0));
  const auto& rows = page.sections.at(0).tables.at(0).table.rows();
  CHECK(std::ranges::find(rows, Row{"changes of the ranks",
                                    "3 ranks after step 19 (150 ms lost), 2 ranks after step 40 (2.30 s lost)"}) !=
        rows.end());
}

TEST_CASE("the page goes into the one given folder, else here, or to --out") {
  const testing::InTempDir folder;
  const std::string one = write_run(folder, "one", {}), two = write_run(folder, "two", {});
  const auto place = [](std::vector<std::string> paths, const std::string& out) { return report::make(paths, out); };
  CHECK(place({one}, "") == one + "/report.html");
  CHECK(place({one, two}, "") == "report.html");
  CHECK(place({one}, "other.html") == "other.html");
  for (const auto& path : {one + "/report.html", std::string("report.html"), std::string("other.html")}) {
    CHECK(contains(testing::read_file(path), "<!doctype html>"));
  }
  CHECK(error_of([&] { place({one}, two); }) == "2: " + two + ": is a folder; name a file in it");
  CHECK(contains(error_of([&] { place({one}, "no/such/page.html"); }),
                 "1: cannot write no/such/page.html: there is no folder no/such"));
}

TEST_CASE("the page of a comparison is copied to --out") {
  const testing::InTempDir folder;
  folder.write("compare.json", "{}");
  CHECK(contains(error_of([] { report::make({"."}, ""); }), "2: .: has no report.html"));
  report::write_page("report.html", testing::some_page());
  const std::string before = testing::read_file("report.html");
  CHECK(report::make({"."}, "") == "./report.html");
  CHECK(report::make({"."}, "copy.html") == "copy.html");
  CHECK(testing::read_file("copy.html") == before);
  CHECK(testing::read_file("report.html") == before);
}
