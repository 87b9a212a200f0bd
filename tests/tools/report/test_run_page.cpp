#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>

#include "support/golden.hpp"
#include "support/text.hpp"
#include "support/variable.hpp"
#include "tools/report/report.hpp"
#include "tools/report/runs.hpp"
#include "tools/report/some_page.hpp"
#include "tools/report/some_run.hpp"

using namespace ddprun;
using namespace ddprun::report;
using testing::contains;
using testing::SomeRun;

namespace {

using Row = std::vector<std::string>;

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

// All that a page says, without the drawings.
std::string text_of(const Page& page) {
  std::string text = "# " + page.title + "\n";
  const auto add = [&](const std::string& title, const std::string& note, const console::Table& table) {
    text += "\n### " + title + "\n" + (note.empty() ? "" : note + "\n") + table.text();
  };
  for (const std::string& notice : page.notices) text += "On the terminal: " + notice + "\n";
  for (const std::string& paragraph : page.paragraphs) text += paragraph + "\n";
  for (const Section& section : page.sections) {
    text += "\n## " + section.title + "\n";
    for (const std::string& paragraph : section.paragraphs) text += paragraph + "\n";
    for (const TitledTable& table : section.tables) add(table.title, "", table.table);
    for (const Chart& chart : section.charts) add(chart.title, chart.note, table_of(chart));
  }
  return text + "\n";
}

constexpr const char* kEnvironment = R"({"date": "2026-11-22T10:15:00", "host": "here", "load": "0.5 0.4 0.3",
  "cores": 2, "torch": "2.11.0"})";

// With an environment that is the same everywhere.
std::string write_some(const testing::TempDir& folder, const std::string& name, const SomeRun& run) {
  const std::string dir = write_run(folder, name, run);
  folder.write(name + "/environment.json", kEnvironment);
  return dir;
}

std::string write_on_gpus(const testing::TempDir& folder) {
  SomeRun run;
  const std::string dir = write_some(folder, "gpu", run);
  folder.write("gpu/gpus-rank0.jsonl", R"({"step":50,"device":1,"allocated":1048576,"reserved":4194304})"
                                       "\n"
                                       R"({"step":100,"device":1,"allocated":2097152})"
                                       "\n");
  folder.write("gpu/gpus-rank1.jsonl", "{\"step\":50,\"device\":0}\n");
  return dir;
}

// Rank 1 has started one call less than rank 0.
void write_collectives_of(const std::string& run) {
  for (int64_t rank = 0; rank < 2; ++rank) {
    comm::RankCollectives file{.rank = rank, .world = 3, .host = "here", .backend = "gloo", .reason = "SIGUSR2"};
    file.written = 100;
    for (int64_t number = 1; number <= 8 - rank; ++number) {
      const auto start = static_cast<double>(number);
      comm::RecordedCall& call = file.calls.emplace_back();
      call.shape = {.number = static_cast<uint64_t>(number), .count = 100, .kind = comm::Kind::allreduce};
      call.step = number / 2;
      call.state = number == 8 ? comm::CallState::started : comm::CallState::finished;
      call.start = start;
      if (number < 8) call.duration = 0.5;
    }
    comm::write_collectives(run, file);
  }
}

std::string write_bench(const testing::TempDir& folder) {
  return folder.write("bench.json", R"({"ddprun_bench": 1, "environment": {"host": "here", "cores": 2}, "rows": [
    {"collective": "allreduce", "ranks": 2, "size": 4096, "backend": "gloo", "algorithm": "ring", "buffer": "malloc",
     "median": 2e-6, "busbw": 2.048e9, "in_place": true},
    {"collective": "allreduce", "ranks": 2, "size": 4, "backend": "gloo", "algorithm": "ring", "buffer": "malloc",
     "median": 1e-6, "busbw": 4e6, "in_place": true},
    {"collective": "allreduce", "ranks": 2, "size": 4096, "backend": "ucx", "algorithm": "ring", "buffer": "malloc",
     "median": 1e-6, "busbw": 4.096e9, "in_place": false}]})");
}

}  // namespace

TEST_CASE("all that the pages say") {
  const testing::TempDir folder;
  const testing::Variable zone("TZ", "UTC");
  ::tzset();
  SomeRun one, two, four, dp, bare;
  one.ranks = dp.ranks = bare.ranks = 1;
  one.summary.strategy = "single";
  one.summary.backend = one.summary.algorithm = one.summary.transport = "";
  one.change = [](record::StepRecord& step) { step.correct = 24; };
  two.summary.throughput = 1550;
  two.settings = "batch_size = 128\n[optimizer]\nname = \"adam\"\nlr = 0.001\n[strategy]\nkind = \"ddp\"\n";
  two.change = [](record::StepRecord& step) { step.lr = 0.1 / static_cast<double>(step.step); };
  four.ranks = 4;
  four.summary.throughput = 3800;
  dp.summary.strategy = "dp";
  dp.summary.backend = dp.summary.algorithm = dp.summary.transport = "";
  dp.summary.devices = 2;
  dp.summary.split.replicate = 1e-3;
  dp.summary.memory_by_device = {3 << 20, 1 << 20};
  bare.epochs = 0;
  bare.summary = {};
  bare.change = [](record::StepRecord& step) { step.loss = NAN; };
  const std::string first = write_some(folder, "net-20261122-101500", {});
  const std::vector<std::string> scaling = {write_some(folder, "four", four), write_some(folder, "one", one),
                                            write_some(folder, "two", two), write_some(folder, "dp", dp)};
  const std::string stuck = write_some(folder, "stuck", {});
  write_collectives_of(stuck);
  std::string text = text_of(page_of({first})) + text_of(page_of(scaling));
  text += text_of(page_of({write_some(folder, "bare", bare)})) + text_of(page_of({write_on_gpus(folder)}));
  text += text_of(page_of({stuck})) + text_of(page_of({write_bench(folder)}));
  testing::check_golden("tools/report/pages.txt", text);
}

TEST_CASE("the loss over steps is the mean over all ranks' samples") {
  const testing::TempDir folder;
  const Page page = page_of({write_run(folder, "net", {})});
  CHECK(rows_of(page, "Training loss over steps")[0] == Row{"1", "0.6667"});  // rank 1 has 64 of 96 samples
}

TEST_CASE("the learning rate is shown if it changes") {
  const testing::TempDir folder;
  SomeRun run;
  run.change = [](record::StepRecord& step) { step.lr = 0.1; };
  CHECK_FALSE(chart_named(page_of({write_run(folder, "constant", run)}), "Learning rate"));
  run.change = [](record::StepRecord& step) { step.lr = 0.1 / static_cast<double>(step.step); };
  CHECK(rows_of(page_of({write_run(folder, "falling", run)}), "Learning rate")[1] == Row{"2", "0.05000"});
}

TEST_CASE("run names include the time, or also the folder, if they would not be unique") {
  const auto names = [](const std::vector<std::string>& dirs) {
    std::vector<tools::Run> runs(dirs.size());
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

TEST_CASE("step times are those of the rank with the largest total, for all steps") {
  const testing::TempDir folder;
  SomeRun run;
  run.change = [](record::StepRecord& step) { step.total = step.step == 1 ? 1 : 2; };
  tools::Run read = tools::read_run(write_run(folder, "a", run));
  REQUIRE(read.steps.size() == 2);
  read.steps[0][0].total = 2;  // rank 0 has one slower step, and rank 1 the larger total
  read.steps[1][1].total = 3;
  read.steps[1][2].total = 3;
  const auto charts = step_time_charts({{"a", read, {}}, {"b", read, {}}});
  REQUIRE(charts.size() == 2);
  CHECK(std::get<Lines>(charts[0].content).series[0].points[0].y ==
        doctest::Approx(std::get<Lines>(charts[0].content).series[0].points[3].y / 2));
}

TEST_CASE("a config that cannot be read is named, and the page has the rest") {
  const testing::TempDir folder;
  const std::string run = write_run(folder, "old", {});
  folder.write("old/config.toml", "[model]\n");
  const Page page = page_of({run});
  REQUIRE(page.notices.size() == 1);
  CHECK(contains(page.notices[0], "old: its settings are not on the page: "));
}

TEST_CASE("many steps are reduced to medians, and the page says so") {
  const testing::TempDir folder;
  SomeRun run;
  run.ranks = 1;
  run.steps = 1001;
  run.change = [](record::StepRecord& step) { step.loss = step.step == 500 ? 1e9 : 1; };
  const auto chart = chart_named(page_of({write_run(folder, "long", run)}), "Training loss over steps");
  REQUIRE(chart);
  CHECK(chart->note == "Each point is the median of up to 3 steps.");
  const auto& points = std::get<Lines>(chart->content).series.at(0).points;
  CHECK(points.size() == 334);
  CHECK(points[0].x == 2);
  CHECK(std::ranges::all_of(points, [](Point point) { return point.y == 1; }));
}

TEST_CASE("texts of a run's files are escaped") {
  const testing::TempDir folder;
  SomeRun run;
  run.summary.model = testing::kHostile;
  run.summary.data = "\xff";
  const std::string html = to_html(page_of({write_run(folder, "<b>", run)}));
  CHECK_FALSE(contains(html, "<script>document"));
  CHECK_FALSE(contains(html, "<b>"));
}
