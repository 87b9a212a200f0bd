// Statistics of samples.
#pragma once

#include <vector>

namespace ddprun::tools {

// The quantile at `probability` (0 .. 1; 0.5 is the median), interpolated between the two nearest samples (Hyndman and
// Fan 1996, type 7, the default of R and NumPy). NaN for no samples.
double quantile(std::vector<double> samples, double probability);
double median(std::vector<double> samples);

}  // namespace ddprun::tools
