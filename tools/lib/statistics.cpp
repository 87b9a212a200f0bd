#include "tools/lib/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ddprun/records.hpp"

namespace ddprun::tools {

double quantile(std::vector<double> samples, double probability) {
  if (samples.empty()) return record::kAbsent;
  std::sort(samples.begin(), samples.end());
  const double at = probability * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto above = std::min(below + 1, samples.size() - 1);
  return std::lerp(samples[below], samples[above], at - static_cast<double>(below));
}

double median(std::vector<double> samples) {
  return quantile(std::move(samples), 0.5);
}

}  // namespace ddprun::tools
