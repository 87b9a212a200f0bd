// Whether variants learn the same, from the tensors that log.parity_steps records and from the losses of all runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ddprun/records.hpp"

namespace ddprun::compare {

// parity-rank<N>.jsonl of one run, by rank. Empty: the run has none.
using ParityRun = std::vector<std::vector<record::ParityRecord>>;

// The largest relative distance of two tensors or losses at a step (from 1) that rounding can cause:
// 256 * 2^-23 * step, which is 3e-5 at the first step. Two orders of summation differ by a few units in the last place
// of their largest terms; a gradient is the sum over a whole batch after cancellation, and 256 allows 8 bits for that.
// Each further step starts from weights that already differ, and adds the same again. An arithmetic error, such as a
// missing rank or a wrong divisor, is a hundred times larger at once. Beyond the bound two runs differ; that alone is
// no error, because training amplifies rounding sooner or later.
double rounding_bound(int64_t step);

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
  int64_t steps = 0;                                             // compared; 0: none
  double ulp_max = record::kAbsent, ulp_mean = record::kAbsent;  // the largest maximum, the mean of all means
  std::string ulp_parameter;                                     // of the largest
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
  bool identical = false;        // all tensors, bit for bit
  std::optional<Parting> parts;  // the first beyond rounding_bound()
  double largest_distance = 0;   // of all tensors
  // Losses, one for each step: the mean over the samples of all ranks.
  int64_t loss_steps = 0;
  int64_t first_other_loss = 0;      // the first step with different bits; 0: none
  int64_t first_parted_loss = 0;     // the first beyond rounding_bound(); 0: none
  double largest_loss_distance = 0;  // relative
};
PairParity pair_parity(const ParityRun& a, const ParityRun& b, const std::vector<double>& losses_a,
                       const std::vector<double>& losses_b);

// As sentences.
std::string text(const Parting& parting);
std::vector<std::string> sentences(const VariantParity& parity);
std::vector<std::string> sentences(const PairParity& parity);

}  // namespace ddprun::compare
