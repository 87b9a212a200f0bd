#include "tools/compare/parity.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace ddprun::compare {
namespace {

using record::ParityRecord;
using record::TensorDigest;

bool same_places(const std::vector<ParityRecord>& a, const std::vector<ParityRecord>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const ParityRecord& x, const ParityRecord& y) {
    return x.step == y.step && x.parameter == y.parameter && x.elements == y.elements;
  });
}

// Calls look(record of a, tensor of a, tensor of b, its name) for every tensor in training order: in each step first
// all gradients, then all weights. Stops when it returns true.
using Look = std::function<bool(const ParityRecord&, const TensorDigest&, const TensorDigest&, const char*)>;
void for_each_tensor(const std::vector<ParityRecord>& a, const std::vector<ParityRecord>& b, const Look& look) {
  for (std::size_t begin = 0; begin < a.size();) {
    std::size_t end = begin;
    while (end < a.size() && a[end].step == a[begin].step) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      if (look(a[i], a[i].gradient, b[i].gradient, "gradient")) return;
    }
    for (std::size_t i = begin; i < end; ++i) {
      if (look(a[i], a[i].value, b[i].value, "weights")) return;
    }
    begin = end;
  }
}

// The first tensor with different bits.
std::optional<Parting> first_other(const std::vector<ParityRecord>& a, const std::vector<ParityRecord>& b) {
  if (!same_places(a, b)) return Parting{0, "", "list of parameters", 1};
  std::optional<Parting> parting;
  for_each_tensor(a, b, [&](const ParityRecord& at, const TensorDigest& x, const TensorDigest& y, const char* tensor) {
    if (x.hash == y.hash) return false;
    parting = Parting{at.step, at.parameter, tensor, distance(x, y)};
    return true;
  });
  return parting;
}

int64_t steps_of(const std::vector<ParityRecord>& records) {
  return records.empty() ? 0 : records.back().step - records.front().step + 1;
}

void add_ulp(const ParityRun& run, VariantParity& parity) {
  double sum = 0, count = 0;
  for (const auto& rank : run) {
    for (const ParityRecord& record : rank) {
      if (!std::isfinite(record.ulp_max)) continue;
      if (!(parity.ulp_max >= record.ulp_max)) {
        parity.ulp_max = record.ulp_max;
        parity.ulp_parameter = record.parameter;
      }
      sum += record.ulp_mean * static_cast<double>(record.elements);
      count += static_cast<double>(record.elements);
    }
  }
  if (count > 0) parity.ulp_mean = sum / count;
}

void compare_tensors(const std::vector<ParityRecord>& a, const std::vector<ParityRecord>& b, PairParity& parity) {
  if (a.empty() || !same_places(a, b)) return;
  parity.tensor_steps = steps_of(a);
  parity.first_tensor = first_other(a, b);
  for_each_tensor(a, b, [&](const ParityRecord&, const TensorDigest& x, const TensorDigest& y, const char*) {
    parity.largest_distance = std::max(parity.largest_distance, distance(x, y));
    return false;
  });
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
  add_ulp(run, parity);
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

}  // namespace ddprun::compare
