#include "tools/compare/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "cli/console/table.hpp"
#include "tools/compare/figures.hpp"
#include "tools/compare/variant.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::compare {
namespace {

bool is_per_sample(const Comparison& comparison) {
  const auto batch_of = [](const Member& member) { return global_batch_of(member.variant.loaded.experiment); };
  return std::any_of(comparison.members.begin(), comparison.members.end(),
                     [&](const Member& member) { return batch_of(member) != batch_of(comparison.members.front()); });
}

std::vector<double> times_of(const Member& member, bool per_sample) {
  return tools::each(member.runs, [&](const Figures& run) {
    return per_sample ? run.total_time / static_cast<double>(run.samples) : run.step;
  });
}

// Runs with different strategies or numbers of ranks see different gradients: only their losses can be compared.
bool same_parallelism(const Member& a, const Member& b) {
  const auto& x = a.variant.loaded.experiment;
  const auto& y = b.variant.loaded.experiment;
  return x.strategy.kind == y.strategy.kind && workers_of(x) == workers_of(y);
}

PairParity parity_of(const Member& base, const Member& member) {
  const bool tensors = same_parallelism(base, member) && !base.parity_runs.empty() && !member.parity_runs.empty();
  const Figures &a = base.runs.front(), &b = member.runs.front();
  const bool aligned = a.first_loss_step == b.first_loss_step;
  PairParity parity =
      pair_parity(tensors ? base.parity_runs.front() : ParityRun{}, tensors ? member.parity_runs.front() : ParityRun{},
                  a.losses, aligned ? b.losses : std::vector<double>{}, a.first_loss_step);
  const config::Experiment &x = base.variant.loaded.experiment, &y = member.variant.loaded.experiment;
  parity.float32 = in_float32(x, y);
  return parity;
}

// How fast, relative to the base: the inverse of the ratio of step times.
std::string in_words(double speed) {
  if (speed >= 2) return fmt::format("{:.1f} times as fast as", speed);
  if (speed <= 0.5) return fmt::format("{:.2f} times as fast as", speed);
  return console::percent(std::abs(speed - 1), 1) + (speed > 1 ? " faster than" : " slower than");
}

// The larger of both sides' medians.
double other_cpu(const Member& a, const Member& b) {
  return std::fmax(a.typical.figures.other_cpu, b.typical.figures.other_cpu);
}

// Whether a difference of this factor can come from other programs that use the share `others` of a machine.
bool explains(double others, double factor) {
  return 1 - others < std::fmin(factor, 1 / factor);
}

GateResult result_of(const Comparison& comparison, const Gate& gate) {
  const Member &over = comparison.members[gate.over], &under = comparison.members[gate.under];
  GateResult result;
  result.gate = gate;
  result.ratio = ratio_of(comparison, gate.over, gate.under);
  const double speed = 1 / result.ratio.value;
  const std::string words = std::abs(speed - 1) < 0.0005 ? "as fast as" : in_words(speed);
  result.words = over.variant.name + " is " + words + " " + under.variant.name;
  const double others = other_cpu(over, under);
  if (explains(others, result.ratio.value / gate.bound)) result.disturbance = others;
  result.held = result.disturbance == 0 && holds(gate, result.ratio);
  return result;
}

void adjust(std::vector<Against>& all, const std::vector<Member>& members) {
  std::vector<double> p;
  for (const Against& against : all) {
    if (!members[against.member].twin) p.push_back(against.ratio.p);
  }
  const std::vector<double> adjusted = holm(p);
  std::size_t next = 0;
  for (Against& against : all) {
    against.adjusted_p = members[against.member].twin ? against.ratio.p : adjusted[next++];
    against.verdict =
        std::isfinite(against.ratio.high) ? verdict_of(against.ratio, against.adjusted_p) : Verdict::single_run;
    const double others = other_cpu(members.front(), members[against.member]);
    if (explains(others, against.ratio.value) && is_decided(against.verdict)) against.verdict = Verdict::disturbed;
  }
}

bool same_losses(const Member& member) {
  return std::ranges::count(member.runs, member.runs.front().losses, &Figures::losses) == std::ssize(member.runs);
}

void look_for_repeats(Comparison& comparison) {
  comparison.loss_repeats.clear();
  comparison.loss_varies.clear();
  for (const Member& member : comparison.members) {
    if (member.runs.size() < 2 || member.runs.front().losses.empty()) continue;
    (same_losses(member) ? comparison.loss_repeats : comparison.loss_varies).push_back(member.variant.name);
  }
}

// Of the median run; of a sample if these are compared.
Split split_of(const Member& member, bool per_sample) {
  const Figures& figures = member.typical.figures;
  Split split = figures.split;
  // single has nothing to communicate: what is measured there is the reading of the clock.
  if (member.variant.loaded.experiment.strategy.kind == "single") split.comm = 0;
  if (!per_sample) return split;
  const double steps = static_cast<double>(figures.step_times.size()) / static_cast<double>(figures.samples);
  for (const PartOfStep& part : kPartsOfStep) split.*part.member *= steps;
  return split;
}

// The same of two members.
bool is_decided(const Comparison& comparison, std::size_t a, std::size_t b) {
  return std::any_of(comparison.against.begin(), comparison.against.end(), [&](const Against& against) {
    return is_decided(against.verdict) && (against.member == a || against.member == b);
  });
}

// About the variant that took the most time, also where there is no verdict that it is slower; about the first one if
// no difference shows.
std::string why_not_faster(const Comparison& comparison) {
  std::size_t slow = 0, fast = 0;
  double most = 1;
  for (const Against& against : comparison.against) {
    if (against.verdict == Verdict::unclear || comparison.members[against.member].twin) continue;
    if (against.ratio.value > std::max(most, 1.0)) {
      std::tie(slow, fast, most) = std::tuple(against.member, std::size_t{0}, against.ratio.value);
    } else if (against.ratio.value < most) {
      std::tie(fast, most) = std::tuple(against.member, against.ratio.value);
    }
  }
  const Member &slower = comparison.members[slow], &faster = comparison.members[fast];
  const bool per_sample = is_per_sample(comparison);
  const Split split = split_of(slower, per_sample), other = split_of(faster, per_sample);
  std::string text = slower.variant.name + ": " + ceiling_of(split, lever_of(comparison.differing)) + ".";
  if (slow == fast || !is_decided(comparison, slow, fast)) return text;
  return text + fmt::format(" In the runs with the median step time, a {} took {} longer than with {}: {}.",
                            measure_of(comparison), console::human_time(split.total() - other.total()),
                            faster.variant.name, difference_of(split, other));
}

}  // namespace

std::vector<std::string> names_of(const std::vector<Member>& members) {
  return tools::each(members, [](const Member& member) { return member.variant.name; });
}

void check_fairness(Comparison& comparison, bool allow_different) {
  const std::vector<Variant> variants = tools::each(comparison.members, &Member::variant);
  if (!allow_different) require_fair(variants);
  comparison.unfair = unfair_differences(variants);
}

std::string measure_of(const Comparison& comparison) {
  return is_per_sample(comparison) ? "sample" : "step";
}

Ratio ratio_of(const Comparison& comparison, std::size_t over, std::size_t under) {
  const bool per_sample = is_per_sample(comparison);
  std::vector<double> times = times_of(comparison.members[over], per_sample);
  std::vector<double> base = times_of(comparison.members[under], per_sample);
  if (!comparison.interleaved) return ratio_of_groups(times, base, comparison.seed);
  const std::size_t rounds = std::min(times.size(), base.size());  // that both have
  times.resize(rounds);
  base.resize(rounds);
  return ratio_by_rounds(times, base, comparison.seed);
}

void judge(Comparison& comparison, const std::vector<Gate>& gates) {
  for (Member& member : comparison.members) {
    member.typical = typical_of(member.runs);
    member.parity = variant_parity(member.parity_runs);
  }
  comparison.against.clear();
  for (std::size_t i = 1; i < comparison.members.size(); ++i) {
    comparison.against.push_back(
        {i, ratio_of(comparison, i, 0), 1, Verdict::unclear, parity_of(comparison.members[0], comparison.members[i])});
  }
  adjust(comparison.against, comparison.members);
  look_for_repeats(comparison);
  comparison.differing = keys_that_differ(tools::each(comparison.members, &Member::variant));
  comparison.ceiling = why_not_faster(comparison);
  comparison.gates.clear();
  for (const Gate& gate : gates) comparison.gates.push_back(result_of(comparison, gate));
}

std::string sentence(const Comparison& comparison, const Against& against) {
  const Member &base = comparison.members.front(), &member = comparison.members[against.member];
  const double value = against.ratio.value;
  std::string text = member.variant.name;
  if (!is_decided(against.verdict)) {
    text += " and " + base.variant.name + ": " + compare::text(against.verdict);
  } else {
    text += " is " + in_words(1 / value) + " " + base.variant.name;
  }
  text += fmt::format(" (ratio of the times for a {} {:.3f}", measure_of(comparison), value);
  if (std::isfinite(against.ratio.high)) {
    text += fmt::format(", 95 % interval {:.3f} to {:.3f}", against.ratio.low, against.ratio.high);
  }
  const std::size_t runs = member.runs.size(), base_runs = base.runs.size();
  text += runs == base_runs ? ", " + console::several(std::ssize(member.runs), "run") + " each"
                            : fmt::format(", {} and {} runs", runs, base_runs);
  if (!comparison.interleaved) text += ", not interleaved";
  text += ").";
  const bool interval_says = against.ratio.low > 1 || against.ratio.high < 1;
  if (against.verdict == Verdict::unclear && interval_says) {
    text += " As the only comparison it would be a difference; among several, it can be chance.";
  }
  if (against.verdict == Verdict::disturbed) {
    text += fmt::format(" Other programs used {} of a machine's CPU time, which can explain this difference.",
                        console::percent(other_cpu(base, member), 0));
  }
  return text;
}

}  // namespace ddprun::compare
