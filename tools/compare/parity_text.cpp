// The sentences of parity.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/compare/parity.hpp"

namespace ddprun::compare {
namespace {

std::string steps_text(int64_t steps) {
  return fmt::format("{} step{}", steps, steps == 1 ? "" : "s");
}

std::string losses_text(const PairParity& parity) {
  if (parity.loss_steps == 0) return "losses: not compared, because the runs have no step in common";
  const std::string steps = steps_text(parity.loss_steps);
  if (parity.first_other_loss == 0) return "losses: equal bit for bit over " + steps;
  return fmt::format("losses: {} step {}; relative distance {:.1e} there, at most {:.1e} (step {}); {} compared",
                     parity.first_other_loss == parity.first_step ? "different from" : "equal bit for bit before",
                     parity.first_other_loss, parity.first_loss_distance, parity.largest_loss_distance,
                     parity.largest_loss_step, steps);
}

std::string tensors_text(const PairParity& parity) {
  const std::string steps = steps_text(parity.tensor_steps);
  if (!parity.first_tensor) return "gradients and weights: equal bit for bit over " + steps;
  return fmt::format("gradients and weights: first difference in {}; at most {:.1e}; {} compared",
                     text(*parity.first_tensor), parity.largest_distance, steps);
}

// The causes that `fits`, in one list; "" without any.
template <class Fits>
std::string listed(const std::vector<Cause>& causes, Fits fits) {
  std::string list;
  for (const Cause& cause : causes) {
    if (fits(cause)) list += (list.empty() ? "" : ", ") + cause.text;
  }
  return list;
}

// What the difference in the first step means; "" if there is none.
std::string about_first_step(const PairParity& parity) {
  const double apart = parity.at_first_step();
  if (apart == 0) return "";
  const std::string place = fmt::format("step {}: ", parity.first_step);
  const bool is_loss = parity.first_other_loss == parity.first_step;
  const auto acts = [&](const Cause& cause) { return cause.at_once || !is_loss; };
  const std::string known = listed(parity.causes, [&](const Cause& cause) { return acts(cause) && !cause.rounds; });
  if (!known.empty()) return place + "these settings change it: " + known;
  if (!parity.float32) return place + "16-bit numbers round so coarsely that no bound separates rounding from an error";
  const std::string rounding = listed(parity.causes, [&](const Cause& cause) { return acts(cause) && cause.rounds; });
  if (apart <= kRounding) {
    return place + fmt::format("within {:.1e}, the bound for sums in another order", kRounding) +
           (rounding.empty() ? "" : ": " + rounding);
  }
  return place + fmt::format(
                     "more than {:.1e}, the bound for sums in another order, and no setting explains it: look "
                     "for random numbers in forward (dropout), or for an error",
                     kRounding);
}

// What is known about the differences in later steps, beyond what changes the first one; "" if nothing.
std::string about_later_steps(const PairParity& parity) {
  const std::string place = fmt::format("after step {}: ", parity.first_step);
  const std::string known = listed(parity.causes, [](const Cause& cause) { return !cause.at_once && !cause.rounds; });
  if (!known.empty()) return place + "these settings change the losses: " + known;
  const auto changes = [](const Cause& cause) { return !cause.rounds; };
  if (std::any_of(parity.causes.begin(), parity.causes.end(), changes)) return "";
  const bool is_named = parity.at_first_step() > 0;  // by about_first_step()
  const std::string rounding = listed(parity.causes, [&](const Cause& cause) { return cause.rounds && !is_named; });
  return place + "no bound, because training amplifies differences" +
         (rounding.empty() ? "" : "; what rounds in another way: " + rounding);
}

}  // namespace

std::string text(const Parting& parting) {
  if (parting.step == 0) return "the parameters are not the same";
  return fmt::format("step {}, {} of {}, relative distance {:.1e}", parting.step, parting.tensor, parting.parameter,
                     parting.distance);
}

std::vector<std::string> sentences(const VariantParity& parity) {
  if (parity.steps == 0) return {};
  std::vector<std::string> lines;
  if (parity.ranks > 1)
    lines.push_back(parity.ranks_part ? "ranks: not equal, first at " + text(*parity.ranks_part)
                                      : fmt::format("ranks: equal bit for bit over {}", steps_text(parity.steps)));
  if (parity.repeats) {
    lines.push_back(*parity.repeats ? "two runs: equal bit for bit over " + steps_text(parity.steps)
                                    : "two runs: not equal, first at " + text(*parity.runs_part) +
                                          "; train.deterministic = true requests equal ones");
  }
  if (parity.ulp_max == 0) {
    lines.push_back("gradients against a float64 mean: equal, except for rounding to float32");
  } else if (std::isfinite(parity.ulp_max)) {
    lines.push_back(fmt::format("gradients against a float64 mean: at most {:.3g} ULP ({}), {:.2g} on average",
                                parity.ulp_max, parity.ulp_parameter, parity.ulp_mean));
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
  if (const std::string line = about_later_steps(parity); !line.empty() && parity.loss_steps > 1) lines.push_back(line);
  return lines;
}

}  // namespace ddprun::compare
