// The checks of a data set against the contract of ddprun/plugin/dataset_plugin.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "ddprun/plugin/dataset_plugin.hpp"
#include "tools/conformance/checks.hpp"

namespace ddprun::conformance {

struct DatasetSettings {
  const ddprun_dataset_plugin* table = nullptr;
  DatasetContext context;
  int64_t samples = 64;  // at most so many of each split, spread evenly over it
};

// Opens the data set once, in another process.
void require_opening(const DatasetSettings& settings);

std::vector<Check> dataset_checks(const DatasetSettings& settings);

}  // namespace ddprun::conformance
