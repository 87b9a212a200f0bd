#include "tools/compare/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "base/text.hpp"
#include "cli/console/table.hpp"
#include "ddprun/error.hpp"
#include "tools/compare/statistics.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::compare {
namespace {

using Steps = std::vector<StepRecord>;

void require_steps(const tools::Run& run, int64_t warmup_steps) {
  const auto steps = static_cast<int64_t>(run.steps.front().size());
  for (const Steps& of_rank : run.steps) {
    if (static_cast<int64_t>(of_rank.size()) == steps) continue;
    throw Error(ExitCode::usage, run.dir + ": its ranks recorded different numbers of steps");
  }
  if (steps > warmup_steps) return;
  throw Error(ExitCode::usage, run.dir + ": the run has " + std::to_string(steps) + " steps, and " +
                                   std::to_string(warmup_steps) +
                                   " are left out as warm-up; train longer, or lower --warmup-steps");
}

double average(const Steps& steps, std::size_t first, double StepRecord::*member) {
  double sum = 0;
  for (std::size_t i = first; i < steps.size(); ++i) sum += steps[i].*member;
  return sum / static_cast<double>(steps.size() - first);
}

Split split_of(const Steps& steps, std::size_t first) {
  Split split;
  for (const PartOfStep& part : kPartsOfStep) {
    if (part.recorded != nullptr) split.*part.member = average(steps, first, part.recorded);
  }
  for (const PartOfStep& part : kPartsOfDp) split.*part.member = average(steps, first, part.recorded);
  split.other = average(steps, first, &StepRecord::total) - split.total();
  return split;
}

// The mean over the samples of all ranks. If no rank has samples in a step, there is no loss.
std::vector<double> losses_of(const tools::Run& run) {
  std::vector<double> losses;
  for (std::size_t step = 0; step < run.steps.front().size(); ++step) {
    double sum = 0, samples = 0;
    for (const Steps& of_rank : run.steps) {
      if (of_rank[step].samples <= 0) continue;
      sum += of_rank[step].loss * static_cast<double>(of_rank[step].samples);
      samples += static_cast<double>(of_rank[step].samples);
    }
    losses.push_back(samples > 0 ? sum / samples : record::kAbsent);
  }
  const bool has_one = std::ranges::any_of(losses, [](double loss) { return std::isfinite(loss); });
  return has_one ? losses : std::vector<double>();
}

double or_absent(int64_t value) {
  return value < 0 ? record::kAbsent : static_cast<double>(value);
}

double median_over(const std::vector<Figures>& runs, double Figures::*member) {
  std::vector<double> values = tools::each(runs, member);
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  return tools::median(values);
}

const Figures& run_of_median_step(const std::vector<Figures>& runs) {
  auto sorted = tools::each(runs, [](const Figures& run) { return &run; });
  std::ranges::sort(sorted, {}, &Figures::step);
  return *sorted[(sorted.size() - 1) / 2];
}

bool all_in(const std::vector<std::string>& keys, const std::string& table) {
  return !keys.empty() && std::ranges::all_of(keys, [&](const std::string& key) { return key.starts_with(table); });
}

constexpr double kLeastShown = 0.0005;

// Enough digits to show the difference between 0.4 and 0.
std::string share_text(double share) {
  if (share > 0 && share < kLeastShown) return "less than 0.1 %";
  return console::percent(share, share < 0.0095 ? 1 : 0);
}

}  // namespace

Figures figures_of(const tools::Run& run, int64_t warmup_steps) {
  require_steps(run, warmup_steps);
  const auto first = static_cast<std::size_t>(warmup_steps);
  const Steps& slowest = tools::slowest_rank(run, first);
  Figures figures;
  for (std::size_t i = first; i < slowest.size(); ++i) figures.step_times.push_back(slowest[i].total);
  figures.total_time = std::accumulate(figures.step_times.begin(), figures.step_times.end(), 0.0);
  figures.step = average(slowest, first, &StepRecord::total);
  figures.split = split_of(slowest, first);
  for (const Steps& of_rank : run.steps) {
    for (std::size_t i = first; i < of_rank.size(); ++i) figures.samples += of_rank[i].samples;
  }
  figures.first_step = slowest[first].step;
  figures.throughput = static_cast<double>(figures.samples) / figures.total_time;
  figures.first_loss_step = slowest.front().step;
  figures.losses = losses_of(run);
  figures.comm_bytes = or_absent(run.summary.comm_bytes);
  figures.comm_time = run.summary.comm_time;
  figures.busbw = run.summary.comm_busbw;
  figures.peak_memory = or_absent(run.summary.peak_memory_bytes);
  figures.test_loss = run.summary.test_loss;
  figures.test_accuracy = run.summary.test_accuracy;
  figures.algorithm = run.summary.algorithm;
  figures.transport = run.summary.transport;
  figures.load = parse_number<double>(tools::load_at_start(run)).value_or(record::kAbsent);
  return figures;
}

Typical typical_of(const std::vector<Figures>& runs) {
  Typical typical;
  Figures& figures = typical.figures;
  figures = run_of_median_step(runs);
  for (double Figures::*member :
       {&Figures::total_time, &Figures::step, &Figures::throughput, &Figures::comm_bytes, &Figures::comm_time,
        &Figures::busbw, &Figures::peak_memory, &Figures::test_loss, &Figures::test_accuracy, &Figures::other_cpu}) {
    figures.*member = median_over(runs, member);
  }
  const std::vector<double> steps = tools::each(runs, &Figures::step);
  typical.step_low = tools::quantile(steps, 0.25);
  typical.step_high = tools::quantile(steps, 0.75);
  return typical;
}

double Split::*lever_of(const std::vector<std::string>& keys_that_differ) {
  if (all_in(keys_that_differ, "data.")) return &Split::data;
  return all_in(keys_that_differ, "optimizer.") ? &Split::optimizer : &Split::comm;
}

std::string ceiling_of(const Split& split, double Split::*lever) {
  if (!split.is_measured()) return "the parts of its step were not measured";
  const double total = split.total();
  const PartOfStep largest =
      std::ranges::max(kPartsOfStep, {}, [&](const PartOfStep& part) { return split.*part.member; });
  const double share = split.*lever / total;
  const std::string name = std::ranges::find(kPartsOfStep, lever, &PartOfStep::member)->name;
  std::string text = share_text(split.*largest.member / total) + " " + largest.name;
  if (!(share > 0)) return text + ", no " + name;
  const bool is_largest = largest.member == lever;
  if (!is_largest) text += ", " + share_text(share) + " " + name;
  const double gain = share / (1 - share);
  if (gain < kLeastShown) return text;
  text += std::string("; without ") + (is_largest ? "it" : "the latter") + ", a step would be ";
  if (gain < 1) return text + share_text(gain) + " faster";
  return text + fmt::format("{:.{}f} times as fast", 1 + gain, gain < 9 ? 1 : 0);
}

std::string difference_of(const Split& slower, const Split& faster) {
  constexpr double kLeast = 0.05;
  std::vector<std::pair<double, const char*>> parts;
  double most = 0;
  for (const PartOfStep& part : kPartsOfStep) {
    parts.emplace_back(slower.*part.member - faster.*part.member, part.name);
    most = std::max(most, std::abs(parts.back().first));
  }
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [more, name] : parts) {
    if (std::abs(more) < kLeast * most) continue;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", name, more < 0 ? "-" : "+",
                        console::human_time(std::abs(more)));
  }
  return text;
}

}  // namespace ddprun::compare
