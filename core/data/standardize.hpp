// Standardisation of features: less their mean, divided by their standard deviation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {

// One feature for each channel of a picture ([C, H, W], over all its pixels), else one for each element of the input.
struct Standardization {
  std::vector<double> mean;
  std::vector<double> deviation;  // 1 for a feature that is constant: it is left unscaled
};

// Mean and standard deviation (of the population: divided by n) of each feature over the whole data set as epoch 0
// gives it. Summed in the order of the samples by the updates of Chan, Golub and LeVeque (1983), in double: the same on
// every rank and with any number of `workers`, the threads that fetch. Throws DatasetError("standardize") for inputs
// that are not float32 or not finite, else what the data set throws.
Standardization fit_standardization(const Dataset& dataset, int workers);

// The data set with its inputs standardised. Throws DatasetError("standardize") where the features are not as many.
std::unique_ptr<Dataset> standardized(std::unique_ptr<Dataset> dataset, Standardization by);

// As text for a checkpoint's metadata, "mean,mean,...;deviation,...", exactly; and back. Reading throws Error(usage)
// for any other text.
std::string to_text(const Standardization& by);
Standardization read_standardization(const std::string& text);

}  // namespace ddprun::data
