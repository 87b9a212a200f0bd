#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "ddprun/error.hpp"
#include "tools/report/report.hpp"
#include "tools/report/runs.hpp"

namespace ddprun::report {
namespace {

// A section without content is left out.
void add(Page& page, Section section) {
  if (!section.charts.empty() || !section.tables.empty()) page.sections.push_back(std::move(section));
}

Section time(const std::vector<NamedRun>& runs) {
  Section section{"Time", {}, {}, split_charts(runs)};
  std::ranges::move(step_time_charts(runs), std::back_inserter(section.charts));
  for (const NamedRun& run : runs) {
    if (run.run.steps.size() > 1) section.tables.push_back(ranks_table(run));
    if (!run.run.gpus.empty()) section.tables.push_back(gpus_table(run));
  }
  return section;
}

Section traces(const std::vector<NamedRun>& runs) {
  Section section{"Timeline of a step", {}, {}, {}};
  for (const NamedRun& run : runs) {
    auto chart = step_timeline(run.run.dir);
    if (!chart) continue;
    if (runs.size() > 1) chart->title = run.name + ": " + chart->title;
    section.charts.push_back(std::move(*chart));
  }
  return section;
}

// run: its name, or empty if there is one run.
void add_collectives(Page& page, const CollectivesByRank& files, const std::string& run) {
  if (files.empty()) return;
  Section section = collectives_section(files);
  if (!run.empty()) section.title += ", " + run;
  page.sections.push_back(std::move(section));
  page.notices.push_back((run.empty() ? "" : run + ": ") + collectives_line(files));
}

// Reads its settings, which are all that a run without a summary has of them. Returns an error in them.
std::string configure(NamedRun& run) {
  try {
    run.experiment = config::load(run.run.config, {}).experiment;
  } catch (const Error& error) {
    return error.what();
  }
  if (run.run.environment.contains("program")) run.experiment.reset();  // its optimizer and precision are not known
  if (!run.experiment) return "";
  const config::Experiment& experiment = *run.experiment;
  record::Summary& summary = run.run.summary;
  if (!run.run.has_summary) {
    summary.model = experiment.model.name;
    summary.data = experiment.data.name;
    summary.strategy = experiment.strategy.kind;
    summary.seed = experiment.experiment.seed;
    if (summary.strategy == "ddp") summary.backend = experiment.comm.backend;
    if (summary.strategy == "dp") summary.devices = experiment.strategy.devices;
  }
  const auto& data = experiment.data;
  if (summary.batch < 0) summary.batch = data.batch_size * (data.batch_per == "rank" ? summary.world : 1);
  return "";
}

}  // namespace

Page collectives_page(const std::string& run_dir, const CollectivesByRank& files) {
  Page page;
  page.title = std::filesystem::canonical(run_dir).filename();
  add_collectives(page, files, "");
  return page;
}

Page run_page(std::vector<tools::Run> all) {
  std::vector<NamedRun> runs = named(std::move(all));
  Page page;
  for (NamedRun& run : runs) {
    if (const std::string error = configure(run); !error.empty())
      page.notices.push_back(run.name + ": its settings are not on the page: " + error);
  }
  page.title = runs.size() == 1 ? runs[0].name : fmt::format("{} runs", runs.size());
  for (const NamedRun& run : runs) {
    page.paragraphs.push_back(summary_sentence(run));
    if (const std::string state = tools::state_of(run.run); !state.empty())
      page.notices.push_back(run.name + ": " + state);
  }
  if (const auto all_differences = differences(runs); !all_differences.empty()) {
    page.paragraphs.push_back(fmt::format("The runs differ in {}. Each of these can change speed or results.",
                                          fmt::join(all_differences, ", ")));
  }
  add(page, {"Results", {}, {results_table(runs)}, scaling_charts(runs)});
  add(page, {"Learning", {}, {}, learning_charts(runs)});
  add(page, time(runs));
  add(page, traces(runs));
  for (const NamedRun& run : runs) {
    add_collectives(page, tools::read_collectives(run.run.dir), runs.size() == 1 ? "" : run.name);
  }
  add(page, {"Versions and machine", {}, {environment_table(runs)}, {}});
  return page;
}

}  // namespace ddprun::report
