// The sentences of parity.hpp.
#include <fmt/format.h>

#include <cmath>

#include "tools/compare/parity.hpp"

namespace ddprun::compare {
namespace {

std::string steps_text(int64_t steps) {
  return fmt::format("{} step{}", steps, steps == 1 ? "" : "s");
}

std::string losses_text(const PairParity& parity) {
  if (parity.first_other_loss == 0) {
    return fmt::format("losses: equal bit for bit over {}", steps_text(parity.loss_steps));
  }
  std::string text = fmt::format("losses: equal bit for bit up to step {}", parity.first_other_loss - 1);
  if (parity.first_other_loss == 1) text = "losses: different bits from step 1 on";
  text += parity.first_parted_loss == 0
              ? fmt::format(", within rounding over {}", steps_text(parity.loss_steps))
              : fmt::format(", apart by more than rounding from step {}", parity.first_parted_loss);
  return text + fmt::format("; largest relative distance {:.1e}", parity.largest_loss_distance);
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
    lines.push_back(*parity.repeats ? "two runs: equal bit for bit"
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
  if (parity.tensor_steps > 0) {
    const std::string steps = steps_text(parity.tensor_steps);
    if (parity.identical) {
      lines.push_back("gradients and weights: equal bit for bit over " + steps);
    } else if (parity.parts) {
      lines.push_back("gradients and weights: apart by more than rounding, first at " + text(*parity.parts));
    } else {
      lines.push_back(fmt::format("gradients and weights: within rounding over {}; largest relative distance {:.1e}",
                                  steps, parity.largest_distance));
    }
  }
  lines.push_back(losses_text(parity));
  return lines;
}

}  // namespace ddprun::compare
