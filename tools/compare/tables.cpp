#include "tools/compare/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/console/table.hpp"
#include "tools/lib/process.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::compare {
namespace {

using console::human_time;
using console::Table;

std::string number(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : "-";
}

std::string bytes(double value) {
  return std::isfinite(value) ? console::human_bytes(static_cast<int64_t>(value)) : "-";
}

std::string served(const Figures& figures) {
  if (figures.algorithm.empty()) return "-";
  return figures.algorithm + (figures.transport.empty() ? "" : "/" + figures.transport);
}

constexpr double kCredible = 1.1;  // efficiency

// Steps 1, 2, 5, 10, 20, 50, ... and the last.
std::vector<std::size_t> some_steps(std::size_t steps) {
  std::vector<std::size_t> chosen;
  for (std::size_t decade = 1; decade <= steps; decade *= 10) {
    for (const std::size_t times : {1, 2, 5}) {
      if (decade * times < steps) chosen.push_back(decade * times);
    }
  }
  if (steps > 0) chosen.push_back(steps);
  return chosen;
}

// " Load of the host at the start: 3.3 to 3.9 in a, 6.5 in b."; "" without a record of it.
std::string loads_text(const Comparison& comparison) {
  std::string text;
  for (const Member& member : comparison.members) {
    std::vector<double> loads = tools::each(member.runs, &Figures::load);
    std::erase_if(loads, [](double load) { return std::isnan(load); });
    if (loads.empty()) return "";
    const auto [low, high] = std::ranges::minmax(loads);
    text += text.empty() ? " Load of the host at the start (average of a minute): " : ", ";
    text += low == high ? fmt::format("{:.2f}", low) : fmt::format("{:.2f} to {:.2f}", low, high);
    text += " in " + member.variant.name;
  }
  return text + ".";
}

}  // namespace

report::TitledTable figures_table(const Comparison& comparison) {
  Table table(Table::columns(
      {"variant", "runs", "total time", "average step", "quartiles", "throughput", "allreduced", "busbw", "served",
       "peak memory"},
      {"runs", "total time", "average step", "quartiles", "throughput", "allreduced", "busbw", "peak memory"}));
  for (const Member& member : comparison.members) {
    const Figures& figures = member.typical.figures;
    table.row({member.variant.name, std::to_string(member.runs.size()), human_time(figures.total_time),
               human_time(figures.step),
               member.runs.size() < 2
                   ? "-"
                   : human_time(member.typical.step_low) + " .. " + human_time(member.typical.step_high),
               console::human_rate(figures.throughput), bytes(figures.comm_bytes),
               console::human_bandwidth(figures.busbw), served(figures), bytes(figures.peak_memory)});
  }
  return {fmt::format("Medians over runs, of the slowest rank: training steps without the first {}{}",
                      comparison.warmup_steps, comparison.unfair.empty() ? "" : "; the work differs"),
          table};
}

report::TitledTable split_table(const Comparison& comparison) {
  std::vector<std::string> titles;
  for (const std::string& name : names_of(comparison.members)) titles.insert(titles.end(), {name, "%"});
  Table table = report::table_with({"part"}, titles);
  const auto row = [&](const std::string& name, const auto& time_of) {
    std::vector<std::string> cells = {name};
    for (const Member& member : comparison.members) {
      const Figures& figures = member.typical.figures;
      const double time = time_of(figures);
      cells.push_back(human_time(time));
      cells.push_back(number(100 * time / figures.split.total(), 1));
    }
    table.row(cells);
  };
  for (const PartOfStep& part : kPartsOfStep) {
    row(part.name, [&](const Figures& figures) {
      return figures.split.is_measured() ? figures.split.*part.member : record::kAbsent;
    });
    if (part.member != &Split::comm) continue;
    for (const PartOfStep& phase : kPartsOfDp) {
      const auto has = [&](const Member& member) { return !std::isnan(member.typical.figures.split.*phase.member); };
      if (std::ranges::none_of(comparison.members, has)) continue;
      row(std::string("  ") + phase.name, [&](const Figures& figures) { return figures.split.*phase.member; });
    }
  }
  row("step", [](const Figures& figures) { return figures.split.total(); });
  const bool waits = std::any_of(comparison.members.begin(), comparison.members.end(), [](const Member& member) {
    const config::Experiment& experiment = member.variant.loaded.experiment;
    return experiment.strategy.kind == "ddp" && workers_of(experiment) > 1;
  });
  return {std::string("Where a step's time goes, in the run with the median step time") +
              (waits ? "; communication includes waiting for other ranks" : ""),
          table};
}

report::TitledTable verdict_table(const Comparison& comparison) {
  const std::string& base = comparison.members.front().variant.name;
  Table table = report::table_with({"against " + base, "verdict"}, {"times as fast", "ratio", "95 % interval", "p"});
  for (const Against& against : comparison.against) {
    const Ratio& ratio = against.ratio;
    const bool bounded = std::isfinite(ratio.high);
    table.row({comparison.members[against.member].variant.name, text(against.verdict), number(1 / ratio.value, 3),
               number(ratio.value, 3), bounded ? fmt::format("{:.3f} .. {:.3f}", ratio.low, ratio.high) : "-",
               !bounded                      ? "-"
               : against.adjusted_p < 0.0005 ? "< 0.001"
                                             : fmt::format("{:.3f}", against.adjusted_p)});
  }
  return {
      "Verdict by the time for a " + measure_of(comparison) + (comparison.interleaved ? "" : " (runs not interleaved)"),
      table};
}

report::TitledTable loss_table(const Comparison& comparison) {
  Table table = report::table_with({"loss at step"}, names_of(comparison.members));
  const int64_t before = comparison.members.front().runs.front().first_loss_step - 1;
  std::size_t longest = 0;
  for (const Member& member : comparison.members) longest = std::max(longest, member.runs.front().losses.size());
  for (const std::size_t step : some_steps(longest)) {
    std::vector<std::string> cells = {std::to_string(before + static_cast<int64_t>(step))};
    for (const Member& member : comparison.members) {
      const Figures& run = member.runs.front();
      const bool has_it = run.first_loss_step == before + 1 && step <= run.losses.size();
      cells.push_back(has_it ? number(run.losses[step - 1], 6) : "-");
    }
    table.row(cells);
  }
  std::vector<std::string> test = {"test"};
  for (const Member& member : comparison.members) test.push_back(number(member.typical.figures.test_loss, 6));
  table.row(test);
  return {std::string("Losses of the first run of each, means over the samples of all ranks") +
              (comparison.unfair.empty() ? "" : "; the work differs"),
          table};
}

std::vector<std::string> answers(const Comparison& comparison) {
  std::vector<std::string> lines;
  for (const Against& against : comparison.against) {
    const bool twin = comparison.members[against.member].twin;
    lines.push_back((twin ? "Noise floor: " : "") + sentence(comparison, against));
  }
  const bool decided =
      std::ranges::any_of(comparison.against, [](const Against& one) { return is_decided(one.verdict); });
  lines.push_back((decided ? "Why not faster? " : "The largest part of a step: ") + comparison.ceiling);
  return lines;
}

std::vector<std::string> warnings(const Comparison& comparison) {
  std::vector<std::string> lines;
  if (!comparison.interleaved) {
    lines.push_back(
        "These runs were not interleaved: changes of the machine between them affect the ratios and p, and other "
        "programs were not measured." +
        loads_text(comparison));
  }
  const bool has_programs = !comparison.members.front().variant.command.empty();
  if (comparison.differing.empty() && !comparison.members.back().twin && !has_programs) {
    lines.push_back(
        "No setting differs: a difference comes from what no config holds, such as the machine, its load, versions of "
        "programs, environment variables, or chance.");
  }
  for (const std::string& line : comparison.unfair) lines.push_back("Different work: " + line + ".");
  if (measure_of(comparison) == "sample") {
    lines.push_back("The batches differ, so speeds are compared by the time for a sample.");
  }
  double most = 0;
  for (const Member& member : comparison.members) {
    for (const Figures& run : member.runs) most = std::fmax(most, run.other_cpu);
  }
  if (most > tools::kDisturbing) {
    lines.push_back(
        fmt::format("Other programs used up to {} of a machine's CPU time during a run. Stop them, "
                    "and measure again.",
                    console::percent(most, 0)));
  }
  for (const auto& [member, speedup] : speedups_of(comparison)) {
    if (!(speedup.efficiency() > kCredible)) continue;
    lines.push_back(
        fmt::format("{} has an efficiency of {}. More than 100 % is rare: check that the run with one "
                    "worker had the cores to itself, and its threads (launch.threads).",
                    member->variant.name, console::percent(speedup.efficiency(), 0)));
  }
  for (const Against& against : comparison.against) {
    if (comparison.members[against.member].twin && is_decided(against.verdict)) {
      lines.push_back(
          "A variant differs from its twin: the machine is not quiet enough for this comparison, or this verdict is "
          "one of the 5 % that are chance.");
    }
  }
  return lines;
}

std::vector<std::pair<std::string, std::vector<std::string>>> parity_sentences(const Comparison& comparison) {
  std::vector<std::pair<std::string, std::vector<std::string>>> all;
  for (const Member& member : comparison.members) {
    const std::vector<std::string> lines = sentences(member.parity);
    if (!lines.empty()) all.emplace_back(member.variant.name, lines);
  }
  const std::string& base = comparison.members.front().variant.name;
  for (const Against& against : comparison.against) {
    all.emplace_back(comparison.members[against.member].variant.name + " against " + base, sentences(against.parity));
  }
  if (!comparison.loss_repeats.empty()) {
    all.emplace_back("the runs of each of these variants have the same losses, bit for bit",
                     std::vector{fmt::format("{}", fmt::join(comparison.loss_repeats, ", "))});
  }
  if (!comparison.loss_varies.empty()) {
    all.emplace_back("losses that vary from run to run",
                     std::vector{fmt::format("{}", fmt::join(comparison.loss_varies, ", "))});
  }
  return all;
}

std::string text(const Comparison& comparison, const GateResult& result) {
  const std::string ratio =
      fmt::format("ratio of the times for a {} {:.3f}", measure_of(comparison), result.ratio.value);
  if (!std::isfinite(result.ratio.high)) {
    return fmt::format("gate '{}' is not decided: a single run has no interval ({})", result.gate.text, ratio);
  }
  const char* verdict = result.held ? "holds" : result.disturbance > 0 ? "is not decided" : "does not hold";
  std::string line =
      fmt::format("gate '{}' {}: {} ({}, 95 % interval {:.3f} to {:.3f}{})", result.gate.text, verdict, result.words,
                  ratio, result.ratio.low, result.ratio.high, comparison.interleaved ? "" : ", not interleaved");
  if (result.disturbance > 0) {
    return line +
           fmt::format("; other programs used {} of a machine's CPU time, which can explain the distance to the bound",
                       console::percent(result.disturbance, 0));
  }
  const bool value_keeps =
      result.gate.at_most ? result.ratio.value <= result.gate.bound : result.ratio.value >= result.gate.bound;
  if (!result.held && value_keeps) line += "; more runs may show it";
  return line;
}

}  // namespace ddprun::compare
