// What `ddprun data info` tells of a data set. Functions give text, ending in a newline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/survey.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::info {

// One split and what a look at it told.
struct SplitSheet {
  std::string name;  // "train", "test"
  const Dataset* dataset = nullptr;
  data::Survey survey;
};

// `mnist: handwritten digits, from IDX files (comes with ddprun)`; of a plugin its version and path.
std::string dataset_title(const ddprun_dataset_plugin& table, const std::string& path);

// Samples, shapes and types; the spread of the inputs; the classes with their counts, or the spread of the targets. At
// least one split; all have the same fields and classes.
std::string dataset_sheet(const std::vector<SplitSheet>& splits);

// `class 5 "Sandal"`, the number alone where it is the name, or for regression the values: "2.5 -1".
std::string target_text(const Dataset& dataset, const data::Sample& sample);

// Inputs and targets of samples that are no pictures, numbered from `first`: a line each, long ones cut.
std::string sample_table(const Dataset& dataset, int64_t first, const std::vector<data::Sample>& samples);

}  // namespace ddprun::info
