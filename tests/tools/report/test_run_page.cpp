#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "support/contains.hpp"
#include "support/error_of.hpp"
#include "tools/report/run_charts.hpp"
#include "tools/report/run_page.hpp"
#include "tools/report/some_page.hpp"
#include "tools/report/some_run.hpp"

using namespace ddprun;
using namespace ddprun::report;
using testing::contains;
using testing::SomeRun;

namespace {

using Row = std::vector<std::string>;

Page page_of_runs(const std::vector<std::string>& dirs) {
  std::vector<record::Run> runs;
  for (const std::string& dir : dirs) runs.push_back(record::read_run(dir));
  return run_page(std::move(runs));
}

std::optional<Chart> chart_named(const Page& page, const std::string& title) {
  for (const Section& section : page.sections) {
    for (const Chart& chart : section.charts) {
      if (chart.title == title) return chart;
    }
  }
  return std::nullopt;
}

std::vector<Row> rows_of(const Page& page, const std::string& title) {
  const auto chart = chart_named(page, title);
  REQUIRE_MESSAGE(chart.has_value(), title);
  return table_of(*chart).rows();
}

Row row_named(const console::Table& table, const std::string& name) {
  for (const Row& row : table.rows()) {
    if (row[0] == name) return row;
  }
  return {};
}

}  // namespace

TEST_CASE("a run's page has its results, curves, times and environment") {
  const testing::TempDir folder;
  const Page page = page_of_runs({write_run(folder, "net-20261122-101500", {})});
  CHECK(page.title == "net");
  REQUIRE(page.paragraphs.size() == 1);
  CHECK(page.paragraphs[0] ==
        "net: simplenet on mnist, ddp over gloo ring over tcp, 2 ranks: test accuracy 90.00 %, 1,000 samples/s, total "
        "time 12.0 s.");
  CHECK(row_named(page.sections[0].tables[0].table, "average step") == Row{"average step", "10.0 ms"});
  CHECK(rows_of(page, "Loss") == std::vector<Row>{{"1", "1", "1.100"}, {"2", "0.5000", "0.5500"}});
  CHECK(rows_of(page, "Accuracy") == std::vector<Row>{{"1", "60"}, {"2", "70"}});
  CHECK(rows_of(page, "The average step")[1] == Row{"forward", "2"});
  CHECK(rows_of(page, "The average step")[5] == Row{"other", "1.000"});
  CHECK(rows_of(page, "The average step, in per cent")[0] ==
        Row{"net", "10.0", "20.0", "30.0", "20.0", "10.0", "10.0"});
  CHECK(rows_of(page, "Step time")[5] == Row{"6", "6", "7"});
  CHECK(rows_of(page, "Distribution of the step time")[1] == Row{"rank 1", "6", "2", "4.500", "6.750", "6.950", "7"});
  CHECK(row_named(page.sections.back().tables[0].table, "torch") == Row{"torch", "2.11.0"});
  CHECK(page.sections[2].tables[0].table.rows().size() == 2);
}

TEST_CASE("figures that were not measured are not on the page") {
  const testing::TempDir folder;
  SomeRun run;
  run.ranks = 1;
  run.epochs = 0;
  run.summary = {};
  run.change = [](record::StepRecord& step) { step.loss = NAN; };
  const Page page = page_of_runs({write_run(folder, "bare", run)});
  for (const char* title : {"Loss", "Accuracy", "Learning rate", "The average step", "Between the devices",
                            "Memory by device", "Training loss over steps"}) {
    CHECK_MESSAGE(!chart_named(page, title), title);
  }
  CHECK(row_named(page.sections[0].tables[0].table, "test accuracy").empty());
  CHECK(chart_named(page, "Step time"));
}

TEST_CASE("the loss over steps is the mean over all ranks' samples") {
  const testing::TempDir folder;
  const Page page = page_of_runs({write_run(folder, "net", {})});
  CHECK(rows_of(page, "Training loss over steps")[0] == Row{"1", "0.6667"});  // rank 1 has 64 of 96 samples
}

TEST_CASE("the accuracy over steps is that of all ranks' samples, and absent if the model has none") {
  const testing::TempDir folder;
  SomeRun run;
  CHECK_FALSE(chart_named(page_of_runs({write_run(folder, "without", run)}), "Training accuracy over steps"));
  run.change = [](record::StepRecord& step) { step.correct = 24; };
  CHECK(rows_of(page_of_runs({write_run(folder, "with", run)}), "Training accuracy over steps")[0] == Row{"1", "50"});
}

TEST_CASE("the learning rate is shown if it changes") {
  const testing::TempDir folder;
  SomeRun run;
  run.change = [](record::StepRecord& step) { step.lr = 0.1; };
  CHECK_FALSE(chart_named(page_of_runs({write_run(folder, "constant", run)}), "Learning rate"));
  run.change = [](record::StepRecord& step) { step.lr = 0.1 / static_cast<double>(step.step); };
  CHECK(rows_of(page_of_runs({write_run(folder, "falling", run)}), "Learning rate")[1] == Row{"2", "0.05000"});
}

TEST_CASE("several runs have one line each, of the slowest rank") {
  const testing::TempDir folder;
  const Page page =
      page_of_runs({write_run(folder, "gloo-20261122-101500", {}), write_run(folder, "ucx-20261122-101501", {})});
  CHECK(page.title == "2 runs");
  CHECK(rows_of(page, "Loss, test")[0] == Row{"1", "1.100", "1.100"});
  CHECK(rows_of(page, "Step time")[5] == Row{"6", "7", "7"});
  CHECK_FALSE(chart_named(page, "Scaling of simplenet on mnist"));
  CHECK(page.sections[0].tables[0].table.columns()[2].title == "ucx");
}

TEST_CASE("run names include the time, or also the folder, if they would not be unique") {
  const auto names = [](const std::vector<std::string>& dirs) {
    std::vector<record::Run> runs(dirs.size());
    for (std::size_t i = 0; i < dirs.size(); ++i) runs[i].dir = dirs[i];
    std::vector<std::string> found;
    for (const NamedRun& run : named(runs)) found.push_back(run.name);
    return found;
  };
  CHECK(names({"runs/a-20261122-101500/", "runs/b-20261122-101500"}) == Row{"a", "b"});
  CHECK(names({"runs/a-20261122-101500-2"}) == Row{"a-2"});
  CHECK(names({"runs/a-20261122-101500", "runs/a-20261122-101501"}) == Row{"a-20261122-101500", "a-20261122-101501"});
  CHECK(names({"one/a", "two/a"}) == Row{"one/a", "two/a"});
}

TEST_CASE("throughput over ranks is compared with ideal scaling from the fewest ranks") {
  const testing::TempDir folder;
  SomeRun one, two, four;
  one.ranks = 1;
  one.summary.strategy = "single";
  one.summary.backend = one.summary.algorithm = "";
  two.summary.throughput = 1550;
  four.ranks = 4;
  four.summary.throughput = 3800;
  const Page page =
      page_of_runs({write_run(folder, "c", four), write_run(folder, "a", one), write_run(folder, "b", two)});
  CHECK(rows_of(page, "Scaling of simplenet on mnist") ==
        std::vector<Row>{{"single", "1", "1,000", "1", "100.0 %"},
                         {"ddp gloo ring", "2", "1,550", "1.550", "77.5 %"},
                         {"ddp gloo ring", "4", "3,800", "3.800", "95.0 %"}});
  const auto chart = chart_named(page, "Scaling of simplenet on mnist");
  REQUIRE(chart);
  const auto& lines = std::get<Lines>(chart->content);
  CHECK(lines.series.back().ideal);
  CHECK(lines.series.back().points.back().y == 4000);
  CHECK_MESSAGE(contains(chart->note, "fewer ranks may have more threads each"), chart->note);
}

TEST_CASE("step times are those of the rank with the largest total, for all steps") {
  const testing::TempDir folder;
  SomeRun run;
  run.change = [](record::StepRecord& step) { step.total = step.step == 1 ? 1 : 2; };
  const std::string dir = write_run(folder, "a", run);
  record::Run read = record::read_run(dir);
  REQUIRE(read.steps.size() == 2);
  read.steps[0][0].total = 2;  // rank 0 has one slower step, and rank 1 the larger total
  read.steps[1][1].total = 3;
  read.steps[1][2].total = 3;
  const auto charts = step_time_charts({{"a", read, {}}, {"b", read, {}}});
  REQUIRE(charts.size() == 2);
  CHECK(std::get<Lines>(charts[0].content).series[0].points[0].y ==
        doctest::Approx(std::get<Lines>(charts[0].content).series[0].points[3].y / 2));
  for (const Chart& chart : charts)
    CHECK_MESSAGE(contains(chart.note, "The rank with the largest total time"), chart.note);
}

TEST_CASE("the page of several runs says in words what differs between them, and the scaling chart refers to it") {
  const testing::TempDir folder;
  SomeRun one, two;
  one.ranks = 1;
  one.summary.strategy = "single";
  two.settings = "batch_size = 128\n[optimizer]\nname = \"adam\"\nlr = 0.001\n[strategy]\nkind = \"ddp\"\n";
  const Page page = page_of_runs({write_run(folder, "one", one), write_run(folder, "two", two)});
  REQUIRE(page.paragraphs.size() == 3);
  for (const char* part : {"The runs differ in ", "global batch (64, 128)", "data.batch_size (64, 128)",
                           "optimizer.name (\"sgd\", \"adam\")", "optimizer.lr (0.01, 0.001)"}) {
    CHECK_MESSAGE(contains(page.paragraphs[2], part), page.paragraphs[2]);
  }
  CHECK(page.notices.empty());
  const auto& table = page.sections[0].tables[0].table;
  CHECK(row_named(table, "optimizer") == Row{"optimizer", "sgd", "adam"});
  CHECK(row_named(table, "learning rate") == Row{"learning rate", "0.01", "0.001"});
  CHECK(row_named(table, "global batch") == Row{"global batch", "64", "128"});
  CHECK(row_named(table, "started").size() == 3);
  const auto chart = chart_named(page, "Scaling of simplenet on mnist");
  REQUIRE(chart);
  CHECK_MESSAGE(contains(chart->note, "The runs also differ in "), chart->note);
  CHECK(contains(chart->note, "optimizer.lr"));
  CHECK_FALSE(contains(chart->note, "strategy.kind"));
}

TEST_CASE("a config that cannot be read is named, and the page has the rest") {
  const testing::TempDir folder;
  const std::string run = write_run(folder, "old", {});
  folder.write("old/config.toml", "schema_version = 1\n");
  const Page page = page_of_runs({run});
  REQUIRE(page.notices.size() == 1);
  CHECK(contains(page.notices[0], "old: its settings are not on the page: "));
}

TEST_CASE("strategy dp shows its communication parts and the memory of its devices") {
  const testing::TempDir folder;
  SomeRun run;
  run.ranks = 1;
  run.summary.strategy = "dp";
  run.summary.devices = 2;
  run.summary.split.replicate = 1e-3;
  run.summary.split.reduce = 4e-3;
  run.summary.memory_by_device = {3 << 20, 1 << 20};
  const Page page = page_of_runs({write_run(folder, "dp", run), write_run(folder, "ddp", {})});
  CHECK(rows_of(page, "Between the devices")[3] == Row{"reduce", "4"});
  CHECK(rows_of(page, "Between the devices")[1] == Row{"scatter", "-"});
  CHECK(rows_of(page, "Memory by device") == std::vector<Row>{{"device 0", "3"}, {"device 1", "1"}});
}

TEST_CASE("replayed steps have their own part and column") {
  const testing::TempDir folder;
  SomeRun replayed;
  replayed.summary.split.graph = 0.004;
  replayed.change = [](record::StepRecord& step) {
    step.forward = step.backward = step.comm = step.optimizer = record::kAbsent;
    step.graph = 0.005;
  };
  const Page with = page_of_runs({write_run(folder, "with", replayed)});
  const Page without = page_of_runs({write_run(folder, "without", {})});
  CHECK(rows_of(with, "The average step").at(5) == Row{"CUDA graph", "4"});
  CHECK(rows_of(without, "The average step").at(4) == Row{"optimizer", "1"});
  const Row rank = with.sections.at(2).tables.front().table.rows().front();
  CHECK(rank.back() == "5.00 ms");
  CHECK(rank.at(5) == "0 s");
  CHECK(rank.size() == without.sections.at(2).tables.front().table.rows().front().size() + 1);
}

TEST_CASE("a run on GPUs reports their figures") {
  const testing::TempDir folder;
  const auto dir = write_run(folder, "gpu", {});
  folder.write("gpu/gpus-rank0.jsonl",
               R"({"step":50,"device":1,"allocated":1048576,"utilization":80,"temperature":60,"power":400})"
               "\n"
               R"({"step":100,"device":1,"allocated":2097152,"utilization":90,"temperature":58})"
               "\n");
  folder.write("gpu/gpus-rank1.jsonl", R"({"step":50,"device":0})"
                                       "\n");
  const auto tables = page_of_runs({dir}).sections.at(2).tables;
  CHECK(tables.back().title == "GPUs, gpu");
  CHECK(tables.back().table.rows() ==
        std::vector<Row>{{"0", "1", "85 %", "2.00 MiB", "", "", "60 C", "400 W"}, {"1", "0", "", "", "", "", "", ""}});
}

TEST_CASE("many steps are reduced to medians, and the page says so") {
  std::vector<Point> points;
  for (int i = 0; i < 1001; ++i) points.push_back({static_cast<double>(i), i == 500 ? 1e9 : 1.0});
  std::size_t window = 0;
  const auto kept = thinned(points, 400, window);
  CHECK(window == 3);
  CHECK(kept.size() == 334);
  CHECK(std::all_of(kept.begin(), kept.end(), [](Point point) { return point.y == 1; }));
  CHECK(kept.front().x == 1);
  CHECK(thinned(points, 2000, window).size() == 1001);
  CHECK(window == 1);
  CHECK(thinned({}, 10, window).empty());
  const testing::TempDir folder;
  SomeRun run;
  run.ranks = 1;
  run.steps = 1001;
  const auto chart = chart_named(page_of_runs({write_run(folder, "long", run)}), "Training loss over steps");
  REQUIRE(chart);
  CHECK(chart->note == "Each point is the median of 2 to 3 steps.");
}

TEST_CASE("texts of a run's files are escaped") {
  const testing::TempDir folder;
  SomeRun run;
  run.summary.model = testing::kHostile;
  run.summary.data = "\xff";
  const std::string html = to_html(page_of_runs({write_run(folder, "<b>", run)}), {});
  CHECK_FALSE(contains(html, "<script>document"));
  CHECK_FALSE(contains(html, "<b>"));
}
