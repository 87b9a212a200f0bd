// Lists: what a function makes of their elements, and statistics of samples.
#pragma once

#include <functional>
#include <ranges>
#include <type_traits>
#include <vector>

namespace ddprun::tools {

// What `of`, a function or a member, makes of each element.
template <std::ranges::input_range Range, class Of = std::identity>
auto each(const Range& range, Of of = {}) {
  std::vector<std::decay_t<std::invoke_result_t<Of&, std::ranges::range_reference_t<const Range>>>> all;
  for (const auto& one : range) all.push_back(std::invoke(of, one));
  return all;
}

// The quantile at `probability` (0 .. 1; 0.5 is the median), interpolated between the two nearest samples (Hyndman and
// Fan 1996, type 7, the default of R and NumPy). NaN for no samples.
double quantile(std::vector<double> samples, double probability);
double median(std::vector<double> samples);

}  // namespace ddprun::tools
