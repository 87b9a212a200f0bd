#include "tools/compare/parity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "cli/console/table.hpp"

namespace ddprun::compare {
namespace {

using record::ParityRecord;
using record::TensorDigest;

bool same_places(const std::vector<ParityRecord>& a, const std::vector<ParityRecord>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const ParityRecord& x, const ParityRecord& y) {
    return x.step == y.step && x.parameter == y.parameter && x.elements == y.elements;
  });
}

// The same tensor of two runs.
struct Pair {
  const ParityRecord* at;
  const TensorDigest *a, *b;
  const char* name;
};

// All of them in training order: in each step first all gradients, then all weights.
std::vector<Pair> pairs_of(const std::vector<ParityRecord>& a, const std::vector<ParityRecord>& b) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < a.size(); ++i) {
    pairs.push_back({&a[i], &a[i].gradient, &b[i].gradient, "gradient"});
    pairs.push_back({&a[i], &a[i].value, &b[i].value, "weights"});
  }
  std::ranges::stable_sort(pairs, {}, [](const Pair& one) { return std::pair(one.at->step, one.name[0] == 'w'); });
  return pairs;
}

// The first tensor with different bits.
std::optional<Parting> first_other(const std::vector<ParityRecord>& a, const std::vector<ParityRecord>& b) {
  if (!same_places(a, b)) return Parting{0, "", "list of parameters", 1};
  for (const auto& [at, x, y, name] : pairs_of(a, b)) {
    if (x->hash != y->hash) return Parting{at->step, at->parameter, name, distance(*x, *y)};
  }
  return std::nullopt;
}

int64_t steps_of(const std::vector<ParityRecord>& records) {
  return records.empty() ? 0 : records.back().step - records.front().step + 1;
}

void compare_tensors(const std::vector<ParityRecord>& a, const std::vector<ParityRecord>& b, PairParity& parity) {
  if (a.empty() || !same_places(a, b)) return;
  parity.tensor_steps = steps_of(a);
  parity.first_tensor = first_other(a, b);
  for (const Pair& one : pairs_of(a, b)) {
    parity.largest_distance = std::max(parity.largest_distance, distance(*one.a, *one.b));
  }
}

void compare_losses(const std::vector<double>& a, const std::vector<double>& b, PairParity& parity) {
  const std::size_t steps = std::min(a.size(), b.size());
  parity.loss_steps = static_cast<int64_t>(steps);
  for (std::size_t i = 0; i < steps; ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const int64_t step = parity.first_step + static_cast<int64_t>(i);
    const double apart = std::abs(a[i] - b[i]) / std::max(std::abs(a[i]), std::abs(b[i]));
    const double known = std::isfinite(apart) ? apart : std::numeric_limits<double>::infinity();
    if (parity.first_other_loss == 0) {
      parity.first_other_loss = step;
      parity.first_loss_distance = known;
    }
    if (known <= parity.largest_loss_distance) continue;
    parity.largest_loss_distance = known;
    parity.largest_loss_step = step;
  }
}

std::string losses_text(const PairParity& parity) {
  if (parity.loss_steps == 0) return "losses: not compared, because the runs have no loss of the same step";
  const std::string steps = console::several(parity.loss_steps, "step");
  if (parity.first_other_loss == 0) return "losses: equal bit for bit over " + steps;
  return fmt::format("losses: {} step {}; relative distance {:.1e} there, at most {:.1e} (step {}); {} compared",
                     parity.first_other_loss == parity.first_step ? "different from" : "equal bit for bit before",
                     parity.first_other_loss, parity.first_loss_distance, parity.largest_loss_distance,
                     parity.largest_loss_step, steps);
}

std::string tensors_text(const PairParity& parity) {
  const std::string steps = console::several(parity.tensor_steps, "step");
  if (!parity.first_tensor) return "gradients and weights: equal bit for bit over " + steps;
  return fmt::format("gradients and weights: first difference in {}; at most {:.1e}; {} compared",
                     text(*parity.first_tensor), parity.largest_distance, steps);
}

// How large the difference in the first step is; "" if there is none.
std::string about_first_step(const PairParity& parity) {
  const double apart = parity.at_first_step();
  if (apart == 0) return "";
  const std::string place = fmt::format("step {}: ", parity.first_step);
  if (!parity.float32) return place + "16-bit numbers round so coarsely that no bound separates rounding from an error";
  return place + fmt::format("{} {:.1e}, the bound for sums in another order",
                             apart <= kRounding ? "within" : "more than", kRounding);
}

}  // namespace

double PairParity::at_first_step() const {
  double apart = first_other_loss == first_step ? first_loss_distance : 0;
  if (first_tensor && first_tensor->step <= first_step) apart = std::max(apart, first_tensor->distance);
  return apart;
}

double distance(const TensorDigest& a, const TensorDigest& b) {
  if (a.hash == b.hash) return 0;
  double squares = 0;
  const std::size_t signs = std::min(a.sketch.size(), b.sketch.size());
  for (std::size_t k = 0; k < signs; ++k) squares += (a.sketch[k] - b.sketch[k]) * (a.sketch[k] - b.sketch[k]);
  const double larger = std::max(a.norm, b.norm);
  if (signs == 0 || !(larger > 0)) return 0;
  return std::sqrt(squares / static_cast<double>(signs)) / larger;
}

VariantParity variant_parity(const std::vector<ParityRun>& runs) {
  VariantParity parity;
  if (runs.empty() || runs.front().empty()) return parity;
  const ParityRun& run = runs.front();
  parity.steps = steps_of(run.front());
  parity.ranks = run.size();
  for (std::size_t rank = 1; rank < run.size() && !parity.ranks_part; ++rank) {
    parity.ranks_part = first_other(run.front(), run[rank]);
  }
  if (runs.size() < 2 || runs[1].empty()) return parity;
  parity.runs_part = first_other(run.front(), runs[1].front());
  parity.repeats = !parity.runs_part;
  return parity;
}

PairParity pair_parity(const ParityRun& a, const ParityRun& b, const std::vector<double>& losses_a,
                       const std::vector<double>& losses_b, int64_t first_step) {
  PairParity parity;
  parity.first_step = first_step;
  if (a.size() == b.size() && !a.empty()) compare_tensors(a.front(), b.front(), parity);
  compare_losses(losses_a, losses_b, parity);
  return parity;
}

std::string text(const Parting& parting) {
  if (parting.step == 0) return "the parameters are not the same";
  return fmt::format("step {}, {} of {}, relative distance {:.1e}", parting.step, parting.tensor, parting.parameter,
                     parting.distance);
}

std::vector<std::string> sentences(const VariantParity& parity) {
  if (parity.steps == 0) return {};
  std::vector<std::string> lines;
  if (parity.ranks > 1)
    lines.push_back(parity.ranks_part
                        ? "ranks: not equal, first at " + text(*parity.ranks_part)
                        : fmt::format("ranks: equal bit for bit over {}", console::several(parity.steps, "step")));
  if (parity.repeats) {
    lines.push_back(*parity.repeats ? "two runs: equal bit for bit over " + console::several(parity.steps, "step")
                                    : "two runs: not equal, first at " + text(*parity.runs_part) +
                                          "; train.deterministic = true requests equal ones");
  }
  return lines;
}

std::vector<std::string> sentences(const PairParity& parity) {
  std::vector<std::string> lines;
  if (parity.tensor_steps > 0) lines.push_back(tensors_text(parity));
  const bool only_losses = parity.tensor_steps == 0 && parity.loss_steps > 0;
  lines.push_back(losses_text(parity) + (only_losses ? "; gradients and weights were not compared" : ""));
  if (!parity.differs()) return lines;
  if (const std::string line = about_first_step(parity); !line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace ddprun::compare
