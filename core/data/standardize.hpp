// Standardization of features: subtract the mean, divide by the standard deviation.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {

// One feature per channel of an image ([C, H, W], over all its pixels), otherwise one per element of the input.
struct Standardization {
  std::vector<double> mean;
  std::vector<double> deviation;  // 1 for a constant feature, which is not scaled
};

// Mean and (population) standard deviation of each feature over the samples of `subset` (empty: of the whole data set)
// as epoch 0 gives them. Computed in double in their order by the updates of Chan, Golub and LeVeque (1983), so that
// the result is equal on every rank and for any number of `workers` (prefetch threads). Throws
// DatasetError("standardize") for inputs that are not float32 or not finite, and what the data set throws.
Standardization fit_standardization(const Dataset& dataset, int workers, std::span<const int64_t> subset = {});

// The data set with standardized inputs. Throws DatasetError("standardize") if the number of features differs.
std::unique_ptr<Dataset> standardized(std::unique_ptr<Dataset> dataset, Standardization by);

// The exact text for a checkpoint's metadata, "mean,mean,...;deviation,...", and back. Parsing throws Error(usage) for
// any other text.
std::string to_text(const Standardization& by);
Standardization read_standardization(const std::string& text);

}  // namespace ddprun::data
