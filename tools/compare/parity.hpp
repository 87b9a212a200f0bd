// Do they learn the same? From the tensors that runs leave with log.parity_steps, and from the losses of all runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ddprun/records.hpp"

namespace ddprun::compare {

// parity-rank<N>.jsonl of one run, by rank. Empty: the run left none.
using ParityRun = std::vector<std::vector<record::ParityRecord>>;

// How far two tensors, or two losses, may be apart at a step (from 1) where nothing but rounding parts them, relative
// to the larger: 256 * 2^-23 * step, which is 3e-5 at the first step. Two orders of summation differ by a few units in
// the last place of their largest terms; a gradient is what is left of a whole batch after cancelling, and 256 grants
// it 8 bits of that. Each further step starts from weights that differ already, and adds as much again. A fault of
// arithmetic, such as a rank left out or a wrong divisor, is a hundred times larger at once. Beyond the bound two
// trainings have parted; that alone is no fault, as training amplifies rounding sooner or later.
double rounding_bound(int64_t step);

// Relative distance |a - b| / max(|a|, |b|), estimated from the sketches; 0 where the hashes are equal. With the 8
// signs of a sketch the estimate is within a factor of 2 nearly always (its variance: Alon, Matias and Szegedy 1996).
double distance(const record::TensorDigest& a, const record::TensorDigest& b);

// Where two sequences of tensors differ.
struct Parting {
  int64_t step = 0;
  std::string parameter;
  std::string tensor;   // "gradient" or "weights"
  double distance = 0;  // relative
};

// One variant by itself.
struct VariantParity {
  int64_t steps = 0;                                             // that were looked at; 0: none
  double ulp_max = record::kAbsent, ulp_mean = record::kAbsent;  // the largest maximum, the mean of all means
  std::string ulp_parameter;                                     // of the largest
  std::size_t ranks = 0;
  std::optional<Parting> ranks_part;  // the first place where gradients or weights of two ranks have other bits
  std::optional<bool> repeats;        // a second run had the same bits; none: there was no second
  std::optional<Parting> runs_part;   // the first place where it had not
};
// `runs` are runs of the variant, the first of which is judged by itself.
VariantParity variant_parity(const std::vector<ParityRun>& runs);

// Two variants side by side.
struct PairParity {
  // Tensors: none where the variants cannot be compared so (other strategies, ranks or parameters).
  int64_t tensor_steps = 0;
  bool identical = false;        // all tensors, bit for bit
  std::optional<Parting> parts;  // the first beyond rounding_bound()
  double largest_distance = 0;   // of all tensors
  // Losses, one for each step: the mean over the samples of all ranks.
  int64_t loss_steps = 0;
  int64_t first_other_loss = 0;      // the first step with another bit pattern; 0: none
  int64_t first_parted_loss = 0;     // the first beyond rounding_bound(); 0: none
  double largest_loss_distance = 0;  // relative
};
PairParity pair_parity(const ParityRun& a, const ParityRun& b, const std::vector<double>& losses_a,
                       const std::vector<double>& losses_b);

// In words, one sentence each.
std::string text(const Parting& parting);
std::vector<std::string> sentences(const VariantParity& parity);
std::vector<std::string> sentences(const PairParity& parity);

}  // namespace ddprun::compare
