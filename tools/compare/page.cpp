#include "tools/compare/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ddprun::compare {
namespace {

using report::Axis;
using report::Bars;
using report::BarSeries;
using report::Chart;
using report::Section;

template <class Get>
std::vector<double> of_each(const Comparison& comparison, Get get) {
  std::vector<double> values;
  for (const Member& member : comparison.members) values.push_back(get(member.typical.figures));
  return values;
}

double largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

// One value per variant.
Chart bars(const Comparison& comparison, const std::string& title, const std::string& axis, BarSeries series) {
  Bars content;
  content.value.title = axis;
  content.groups = names_of(comparison.members);
  content.series = {std::move(series)};
  Chart chart;
  chart.title = title;
  if (!comparison.unfair.empty()) chart.note = "The work differs.";
  chart.content = std::move(content);
  chart.half = true;
  return chart;
}

template <class Get>
Chart time_bars(const Comparison& comparison, const std::string& title, Get get) {
  std::vector<double> values = of_each(comparison, get);
  const report::Unit unit = report::unit_of_seconds(largest(values));
  for (double& value : values) value *= unit.factor;
  return bars(comparison, title, "time (" + unit.name + ")", {title, values, {}, {}});
}

// The speed relative to the first variant, with the interval of the inverse ratio.
Chart gain_bars(const Comparison& comparison) {
  BarSeries series{"gain", {1}, {1}, {1}};
  for (const Against& against : comparison.against) {
    const Ratio& ratio = against.ratio;
    const bool bounded = std::isfinite(ratio.high) && ratio.low > 0;
    series.values.push_back(1 / ratio.value);
    series.low.push_back(1 / (bounded ? ratio.high : ratio.value));
    series.high.push_back(1 / (bounded ? ratio.low : ratio.value));
  }
  const std::string& base = comparison.members.front().variant.name;
  Chart chart = bars(comparison, "Performance gain", "times as fast as " + base, std::move(series));
  std::get<Bars>(chart.content).line = 1;
  chart.note = "By the time for a " + measure_of(comparison) +
               "; whiskers: 95 % interval, which a single run does not have. Right of the line is faster.";
  return chart;
}

Section speed_section(const Comparison& comparison) {
  Section section{"Speed", {}, {verdict_table(comparison), figures_table(comparison)}, {}};
  section.charts.push_back(time_bars(comparison, "Total time", [](const Figures& f) { return f.total_time; }));
  section.charts.push_back(time_bars(comparison, "Average batch", [](const Figures& f) { return f.step; }));
  section.charts.push_back(
      bars(comparison, "Throughput", "samples/s",
           {"throughput", of_each(comparison, [](const Figures& f) { return f.throughput; }), {}, {}}));
  section.charts.push_back(gain_bars(comparison));
  return section;
}

// One series per part of a step, one group per variant.
std::vector<BarSeries> parts(const Comparison& comparison, double factor) {
  std::vector<BarSeries> series;
  for (const PartOfStep& part : parts_of_step(splits_of(comparison))) {
    std::vector<double> values =
        of_each(comparison, [&](const Figures& f) { return std::max(0.0, f.split.*part.member) * factor; });
    series.push_back({part.name, std::move(values), {}, {}});
  }
  return series;
}

Section split_section(const Comparison& comparison) {
  const report::Unit unit =
      report::unit_of_seconds(largest(of_each(comparison, [](const Figures& f) { return f.step; })));
  Bars grouped;
  grouped.value.title = "time (" + unit.name + ")";
  grouped.groups = names_of(comparison.members);
  grouped.series = parts(comparison, unit.factor);
  report::Shares stacked{names_of(comparison.members), parts(comparison, 1)};
  Chart times, shares;
  times.title = "Parts of the average step";
  times.content = std::move(grouped);
  shares.title = "Parts of the average step in per cent";
  shares.content = std::move(stacked);
  return {"Where a step's time goes", {comparison.ceiling}, {split_table(comparison)}, {times, shares}};
}

// Both figures of DDP tutorials: 35 % of the time saved is a throughput that is 55 % higher.
Chart gains_chart(const std::vector<std::pair<std::string, Speedup>>& speedups) {
  Bars content;
  content.value.title = "per cent";
  content.line = 0;
  content.series = {{"time saved", {}, {}, {}}, {"throughput gain", {}, {}, {}}};
  for (const auto& [name, speedup] : speedups) {
    content.groups.push_back(name);
    content.series[0].values.push_back(100 * speedup.time_saved());
    content.series[1].values.push_back(100 * (speedup.speedup - 1));
  }
  Chart chart;
  chart.title = "Gain over one worker";
  chart.note =
      "For equal samples. Right of the line is better than one worker. Without intervals: the verdict says whether a "
      "difference shows.";
  chart.content = std::move(content);
  return chart;
}

Section speedup_section(const Comparison& comparison) {
  const auto speedups = speedups_of(comparison);
  if (speedups.empty()) return {};
  return {"Speed-up", {}, speedup_tables(comparison), {gains_chart(speedups)}};
}

Chart loss_chart(const Comparison& comparison) {
  report::Lines lines;
  lines.x = {"step", report::Scale::linear, true, false};
  lines.y.title = "loss";
  for (const Member& member : comparison.members) {
    report::LineSeries series;
    series.name = member.variant.name;
    const auto& losses = member.runs.front().losses;
    for (std::size_t i = 0; i < losses.size(); ++i) series.points.push_back({static_cast<double>(i + 1), losses[i]});
    lines.series.push_back(std::move(series));
  }
  Chart chart;
  chart.title = "Training loss";
  chart.note = std::string("First run of each variant; mean over the samples of all ranks.") +
               (comparison.unfair.empty() ? "" : " The work differs.");
  chart.content = std::move(lines);
  return chart;
}

Section parity_section(const Comparison& comparison) {
  Section section{"Do they learn the same?", {}, {loss_table(comparison)}, {loss_chart(comparison)}};
  for (const auto& [title, lines] : parity_sentences(comparison)) {
    std::string paragraph = title + ": ";
    for (const std::string& line : lines) paragraph += (&line == &lines.front() ? "" : "; ") + line;
    section.paragraphs.push_back(paragraph + ".");
  }
  return section;
}

Section steps_section(const Comparison& comparison) {
  const report::Unit unit =
      report::unit_of_seconds(largest(of_each(comparison, [](const Figures& f) { return f.step; })));
  report::Lines lines;
  lines.x = {"step", report::Scale::linear, true, false};
  lines.y.title = "time (" + unit.name + ")";
  lines.from_zero = true;
  report::Histogram histogram;
  histogram.x.title = "time of a step (" + unit.name + ")";
  for (const Member& member : comparison.members) {
    const Figures& figures = member.typical.figures;
    report::LineSeries over_steps;
    over_steps.name = member.variant.name;
    BarSeries spread{member.variant.name, {}, {}, {}};
    for (std::size_t i = 0; i < figures.step_times.size(); ++i) {
      const double time = figures.step_times[i] * unit.factor;
      over_steps.points.push_back({static_cast<double>(figures.first_step) + static_cast<double>(i), time});
      spread.values.push_back(time);
    }
    lines.series.push_back(std::move(over_steps));
    histogram.series.push_back(std::move(spread));
  }
  Chart over, distribution;
  over.title = "Step time over steps";
  over.note = "The slowest rank of each variant's run with the median speed.";
  over.content = std::move(lines);
  distribution.title = "Distribution of step times";
  distribution.note = over.note;
  distribution.content = std::move(histogram);
  return {"Steps", {}, {}, {over, distribution}};
}

std::string made_on(const Comparison& comparison) {
  const auto of = [&](const char* key) {
    const auto found = comparison.environment.find(key);
    return found == comparison.environment.end() ? std::string("?") : found->second;
  };
  return "ddprun " + of("ddprun") + " on " + of("host") + ", " + of("cpu_model") + ", " + of("cores") + " cores, " +
         of("date") + ".";
}

}  // namespace

report::Page page_of(const Comparison& comparison) {
  report::Page page;
  page.title = "Comparison:";
  for (const std::string& name : names_of(comparison.members)) {
    page.title += (name == comparison.members.front().variant.name ? " " : ", ") + name;
  }
  page.paragraphs = answers(comparison);
  for (const std::string& line : warnings(comparison)) page.paragraphs.push_back(line);
  for (const GateResult& result : comparison.gates) page.paragraphs.push_back(text(result) + ".");
  page.paragraphs.push_back(made_on(comparison));
  page.sections = {speed_section(comparison), split_section(comparison)};
  if (Section speedup = speedup_section(comparison); !speedup.tables.empty())
    page.sections.push_back(std::move(speedup));
  page.sections.push_back(parity_section(comparison));
  page.sections.push_back(steps_section(comparison));
  return page;
}

}  // namespace ddprun::compare
