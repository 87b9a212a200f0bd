#include "tools/compare/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/compare/ceiling.hpp"
#include "tools/compare/fairness.hpp"

namespace ddprun::compare {
namespace {

std::vector<double> steps_of(const Member& member) {
  std::vector<double> steps;
  for (const Figures& run : member.runs) steps.push_back(run.step);
  return steps;
}

// The steps of both sides of a pair, for the rounds that both have.
std::pair<std::vector<double>, std::vector<double>> rounds_of(const Member& over, const Member& under) {
  std::vector<double> times = steps_of(over), base = steps_of(under);
  const std::size_t rounds = std::min(times.size(), base.size());
  times.resize(rounds);
  base.resize(rounds);
  return {times, base};
}

ParityRun first_parity(const Member& member) {
  return member.parity_runs.empty() ? ParityRun{} : member.parity_runs.front();
}

// Runs with different strategies or numbers of ranks see different gradients: only their losses can be compared.
bool same_parallelism(const Member& a, const Member& b) {
  const auto& x = a.variant.loaded.experiment;
  const auto& y = b.variant.loaded.experiment;
  return x.strategy.kind == y.strategy.kind && workers_of(x) == workers_of(y);
}

PairParity parity_of(const Member& base, const Member& member) {
  const bool tensors = same_parallelism(base, member);
  return pair_parity(tensors ? first_parity(base) : ParityRun{}, tensors ? first_parity(member) : ParityRun{},
                     base.runs.front().losses, member.runs.front().losses);
}

// How fast, relative to the base: the inverse of the ratio of step times.
std::string in_words(double speed) {
  if (speed >= 2) return fmt::format("{:.1f} times as fast as", speed);
  if (speed <= 0.5) return fmt::format("{:.2f} times as fast as", speed);
  return fmt::format("{:.1f} % {} than", 100 * std::abs(speed - 1), speed > 1 ? "faster" : "slower");
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
    against.verdict = verdict_of(against.ratio, against.adjusted_p);
    const double others = other_cpu(members.front(), members[against.member]);
    if (explains(others, against.ratio.value) && against.verdict != Verdict::unclear)
      against.verdict = Verdict::disturbed;
  }
}

bool same_losses(const Member& member) {
  return std::all_of(member.runs.begin(), member.runs.end(),
                     [&](const Figures& run) { return run.losses == member.runs.front().losses; });
}

void look_for_repeats(Comparison& comparison) {
  comparison.loss_repeats.clear();
  comparison.loss_varies.clear();
  for (const Member& member : comparison.members) {
    if (member.runs.size() < 2) continue;
    (same_losses(member) ? comparison.loss_repeats : comparison.loss_varies).push_back(member.variant.name);
  }
}

std::vector<Variant> variants_of(const std::vector<Member>& members) {
  std::vector<Variant> variants;
  for (const Member& member : members) {
    if (!member.twin) variants.push_back(member.variant);
  }
  return variants;
}

}  // namespace

std::vector<Split> splits_of(const Comparison& comparison) {
  std::vector<Split> splits;
  for (const Member& member : comparison.members) splits.push_back(member.typical.figures.split);
  return splits;
}

std::vector<std::string> names_of(const std::vector<Member>& members) {
  std::vector<std::string> names;
  for (const Member& member : members) names.push_back(member.variant.name);
  return names;
}

Ratio ratio_of(const Comparison& comparison, std::size_t over, std::size_t under) {
  const Member &a = comparison.members[over], &b = comparison.members[under];
  if (!comparison.interleaved) return ratio_of_groups(steps_of(a), steps_of(b), comparison.seed);
  const auto [times, base] = rounds_of(a, b);
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
  comparison.differing = keys_that_differ(variants_of(comparison.members));
  comparison.ceiling = comparison.members.front().variant.name + ": " +
                       ceiling_of(comparison.members.front().typical.figures.split, lever_of(comparison.differing));
  comparison.gates.clear();
  for (const Gate& gate : gates) comparison.gates.push_back(result_of(comparison, gate));
}

std::string sentence(const Comparison& comparison, const Against& against) {
  const Member &base = comparison.members.front(), &member = comparison.members[against.member];
  const double value = against.ratio.value;
  std::string text = member.variant.name;
  const bool is_known = against.verdict == Verdict::faster || against.verdict == Verdict::slower;
  if (!is_known) {
    text += " and " + base.variant.name + ": " + compare::text(against.verdict);
  } else {
    text += " is " + in_words(1 / value) + " " + base.variant.name;
  }
  text += fmt::format(" (step time ratio {:.3f}", value);
  if (std::isfinite(against.ratio.high)) {
    text += fmt::format(", 95 % interval {:.3f} to {:.3f}", against.ratio.low, against.ratio.high);
  }
  const std::size_t runs = member.runs.size(), base_runs = base.runs.size();
  text += runs == base_runs ? fmt::format(", {} run{} each", runs, runs == 1 ? "" : "s")
                            : fmt::format(", {} and {} runs", runs, base_runs);
  if (!comparison.interleaved) text += ", not interleaved";
  text += ").";
  const bool interval_says = against.ratio.low > 1 || against.ratio.high < 1;
  if (against.verdict == Verdict::unclear && interval_says) {
    text += " As the only comparison it would be a difference; among several, it can be chance.";
  }
  if (against.verdict == Verdict::disturbed) {
    text += fmt::format(" Other programs used {:.0f} % of a machine's CPU time, which can explain this difference.",
                        100 * other_cpu(base, member));
  }
  return text;
}

}  // namespace ddprun::compare
