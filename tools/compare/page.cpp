#include "tools/compare/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tools/lib/statistics.hpp"

namespace ddprun::compare {
namespace {

using report::Axis;
using report::Bars;
using report::BarSeries;
using report::Chart;
using report::Section;

template <class Get>
std::vector<double> of_each(const Comparison& comparison, Get get) {
  return tools::each(comparison.members, [&](const Member& one) { return std::invoke(get, one.typical.figures); });
}

Bars bars_of(const Axis& axis, std::vector<std::string> groups, std::vector<BarSeries> series) {
  return {axis, std::move(groups), std::move(series), {}};
}

// One value per variant.
Chart bars(const Comparison& comparison, const std::string& title, const std::string& axis, BarSeries series) {
  return report::half_chart(title, comparison.unfair.empty() ? "" : "The work differs.",
                            bars_of({axis}, names_of(comparison.members), {std::move(series)}));
}

report::Unit unit_of_steps(const Comparison& comparison) {
  return report::unit_of_seconds(std::ranges::max(of_each(comparison, &Figures::step)));
}

// values[i] is that of x = first + i.
report::LineSeries line_of(const Member& member, int64_t first, const std::vector<double>& values, double factor = 1) {
  report::LineSeries line;
  line.name = member.variant.name;
  for (const double value : values) line.points.push_back({static_cast<double>(first++), value * factor});
  return line;
}

template <class Get>
Chart time_bars(const Comparison& comparison, const std::string& title, Get get) {
  std::vector<double> values = of_each(comparison, get);
  const report::Unit unit = report::unit_of_seconds(std::ranges::max(values));
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
  section.charts.push_back(time_bars(comparison, "Total time", &Figures::total_time));
  section.charts.push_back(time_bars(comparison, "Average batch", &Figures::step));
  section.charts.push_back(
      bars(comparison, "Throughput", "samples/s", {"throughput", of_each(comparison, &Figures::throughput), {}, {}}));
  section.charts.push_back(gain_bars(comparison));
  return section;
}

// One series per part of a step, one group per variant.
std::vector<BarSeries> parts(const Comparison& comparison, double factor) {
  std::vector<BarSeries> series;
  for (const PartOfStep& part : kPartsOfStep) {
    std::vector<double> values =
        of_each(comparison, [&](const Figures& f) { return std::max(0.0, f.split.*part.member) * factor; });
    series.push_back({part.name, std::move(values), {}, {}});
  }
  return series;
}

Section split_section(const Comparison& comparison) {
  const report::Unit unit = unit_of_steps(comparison);
  const std::vector<std::string> names = names_of(comparison.members);
  const Bars times = bars_of({"time (" + unit.name + ")"}, names, parts(comparison, unit.factor));
  const report::Shares shares{names, parts(comparison, 1)};
  return {"Where a step's time goes",
          {comparison.ceiling},
          {split_table(comparison)},
          {report::whole_chart("Parts of the average step", "", times),
           report::whole_chart("Parts of the average step in per cent", "", shares)}};
}

// Both figures of DDP tutorials: 35 % of the time saved is a throughput that is 55 % higher.
Chart gains_chart(const std::vector<std::pair<const Member*, Speedup>>& speedups) {
  Bars content = bars_of({"per cent"}, {}, {{"time saved", {}, {}, {}}, {"throughput gain", {}, {}, {}}});
  content.line = 0;
  for (const auto& [member, speedup] : speedups) {
    content.groups.push_back(member->variant.name);
    content.series[0].values.push_back(100 * speedup.time_saved());
    content.series[1].values.push_back(100 * (speedup.speedup - 1));
  }
  return report::whole_chart(
      "Gain over one worker",
      "For equal samples. Right of the line is better than one worker. Without intervals: the verdict says whether a "
      "difference shows.",
      std::move(content));
}

Chart loss_chart(const Comparison& comparison) {
  report::Lines lines{{"step", report::Scale::linear, true, false}, {"loss"}, {}};
  for (const Member& member : comparison.members)
    lines.series.push_back(line_of(member, 1, member.runs.front().losses));
  return report::whole_chart("Training loss",
                             std::string("First run of each variant; mean over the samples of all ranks.") +
                                 (comparison.unfair.empty() ? "" : " The work differs."),
                             std::move(lines));
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
  const report::Unit unit = unit_of_steps(comparison);
  report::Lines lines{{"step", report::Scale::linear, true, false}, {"time (" + unit.name + ")"}, {}, true};
  report::Histogram histogram{{"time of a step (" + unit.name + ")"}, {}};
  for (const Member& member : comparison.members) {
    const Figures& figures = member.typical.figures;
    lines.series.push_back(line_of(member, figures.first_step, figures.step_times, unit.factor));
    BarSeries& spread = histogram.series.emplace_back(BarSeries{member.variant.name, figures.step_times, {}, {}});
    for (double& time : spread.values) time *= unit.factor;
  }
  const std::string note = "The slowest rank of each variant's run with the median speed.";
  return {"Steps",
          {},
          {},
          {report::whole_chart("Step time over steps", note, std::move(lines)),
           report::whole_chart("Distribution of step times", note, std::move(histogram))}};
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
  for (const GateResult& result : comparison.gates) page.paragraphs.push_back(text(comparison, result) + ".");
  page.paragraphs.push_back(made_on(comparison));
  page.sections = {speed_section(comparison), split_section(comparison)};
  if (const auto speedups = speedups_of(comparison); !speedups.empty()) {
    page.sections.push_back({"Speed-up", {}, {speedup_table(comparison)}, {gains_chart(speedups)}});
  }
  page.sections.push_back(parity_section(comparison));
  page.sections.push_back(steps_section(comparison));
  return page;
}

}  // namespace ddprun::compare
