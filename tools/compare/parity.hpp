// Whether variants learn the same, from the tensors that log.parity_steps records and from the losses of all runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ddprun/records.hpp"
#include "tools/compare/variant.hpp"

namespace ddprun::compare {

// parity-rank<N>.jsonl of one run, by rank. Empty: the run has none.
using ParityRun = std::vector<std::vector<record::ParityRecord>>;

// In the first step, float32 sums in another order make losses or gradients differ by this relative distance at most
// (docs/comparing.md). An arithmetic error, such as a missing rank or a wrong divisor, is a hundred times larger.
constexpr double kRounding = 256 * 0x1p-23;

// Relative distance |a - b| / max(|a|, |b|), estimated from the sketches; 0 if the hashes are equal. With the 8 signs
// of a sketch, the estimate is nearly always within a factor of 2 (its variance: Alon, Matias and Szegedy 1996).
double distance(const record::TensorDigest& a, const record::TensorDigest& b);

// Where two sequences of tensors differ.
struct Parting {
  int64_t step = 0;
  std::string parameter;
  std::string tensor;   // "gradient" or "weights"
  double distance = 0;  // relative
};

// The parity of one variant.
struct VariantParity {
  int64_t steps = 0;  // compared; 0: none
  std::size_t ranks = 0;
  std::optional<Parting> ranks_part;  // the first difference between two ranks
  std::optional<bool> repeats;        // a second run had the same bits; none: no second run
  std::optional<Parting> runs_part;   // the first difference between the two runs
};
// `runs` are runs of the variant; only `repeats` and `runs_part` use more than the first one.
VariantParity variant_parity(const std::vector<ParityRun>& runs);

// The parity of two variants.
struct PairParity {
  // Tensors: none if they cannot be compared (different strategies, ranks or parameters).
  int64_t tensor_steps = 0;
  std::optional<Parting> first_tensor;  // the first with different bits
  double largest_distance = 0;          // of all tensors
  // Losses, one for each step from first_step on: the mean over the samples of all ranks.
  int64_t first_step = 1;
  int64_t loss_steps = 0;            // 0: the runs have no step in common
  int64_t first_other_loss = 0;      // the first step with different bits; 0: none
  double first_loss_distance = 0;    // in that step, relative
  double largest_loss_distance = 0;  // relative; infinite if one of two losses is not finite
  int64_t largest_loss_step = 0;     // where it is
  bool float32 = true;               // in_float32()

  bool differs() const { return first_tensor || first_other_loss > 0; }
  // The relative distance in the first step, of the loss or of the first tensor; 0: equal there.
  double at_first_step() const;
};
// Without float32. Both losses begin at `first_step`.
PairParity pair_parity(const ParityRun& a, const ParityRun& b, const std::vector<double>& losses_a,
                       const std::vector<double>& losses_b, int64_t first_step = 1);

// As sentences.
std::string text(const Parting& parting);
std::vector<std::string> sentences(const VariantParity& parity);
std::vector<std::string> sentences(const PairParity& parity);

}  // namespace ddprun::compare
