// Statistics of a split: the distribution of its values, the frequency of its classes; and single samples.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {

// Of the finite values; all NaN if there is none.
struct Spread {
  double low = NAN;
  double high = NAN;
  double mean = NAN;
  double deviation = NAN;  // of the population
  int64_t others = 0;      // infinite or NaN values
};

struct SurveyLimits {
  int64_t measured = 1000;                     // maximum number of samples whose inputs are read
  std::chrono::duration<double> counting{2};   // approximate time for counting the targets of further samples
  std::chrono::duration<double> measuring{3};  // approximate time for the inputs, of at least one sample
};

struct Survey {
  int64_t measured = 0;          // samples, spread evenly over the split
  std::vector<Spread> inputs;    // one per channel for 3-dimensional inputs, otherwise one
  int64_t counted = 0;           // samples, spread evenly over the split: all, or as many as the time limit allows
  std::vector<int64_t> classes;  // samples per class; empty if targets are not classes
  Spread targets;                // if targets are not classes
};

// Fetches in the calling thread, at epoch 0; reading a target means fetching its sample. Splits are often sorted by
// class, so neighbours are alike; therefore the samples are spread evenly over the split at any time. Throws what the
// data set throws. Labels must be valid classes, as open_splits guarantees.
Survey survey(const Dataset& dataset, const SurveyLimits& limits = {});

// One sample as numbers. int64 beyond 2^53 is rounded.
struct Sample {
  std::vector<double> input;
  std::vector<double> target;
};

// Throws what the data set throws.
Sample fetch_sample(const Dataset& dataset, int64_t index, int64_t epoch);

// True if the targets are classes.
bool has_classes(const Dataset& dataset);

}  // namespace ddprun::data
