// Looks at the samples of a split: how its values spread, how often each class comes; and single samples for a person.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::data {

// Of the finite values; all NaN where there is none.
struct Spread {
  double low = NAN;
  double high = NAN;
  double mean = NAN;
  double deviation = NAN;  // of the population
  int64_t others = 0;      // infinite, or not a number
};

struct SurveyLimits {
  int64_t measured = 1000;                     // samples whose inputs are measured
  std::chrono::duration<double> counting{2};   // how long the targets of further samples are counted, about
  std::chrono::duration<double> measuring{3};  // after which fewer are measured, about; one at least
};

struct Survey {
  int64_t measured = 0;          // samples, spread over the split
  std::vector<Spread> inputs;    // one for each channel where an input has three dimensions, else one
  int64_t counted = 0;           // samples, spread over the split: all, or else as many as the limit allows
  std::vector<int64_t> classes;  // samples of each class; empty where a target is no class
  Spread targets;                // where a target is no class
};

// Fetches in the calling thread, at epoch 0; to learn a target is to fetch its sample. Splits are often sorted by
// class, so that neighbours are alike: wherever it stops, the samples seen lie evenly over the split. Throws what the
// data set throws; its labels must be classes of it, as those that open_splits gives are.
Survey survey(const Dataset& dataset, const SurveyLimits& limits = {});

// One sample, as numbers. int64 beyond 2^53 is rounded.
struct Sample {
  std::vector<double> input;
  std::vector<double> target;
};

// Throws what the data set throws.
Sample fetch_sample(const Dataset& dataset, int64_t index, int64_t epoch);

// True where a target is one of the data set's classes.
bool has_classes(const Dataset& dataset);

}  // namespace ddprun::data
