// `ddprun data info`: the content of a data set.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ddprun/plugin/dataset_plugin.hpp"
#include "tools/data/survey.hpp"

namespace ddprun::info {

struct Request {
  std::string data_set;                        // its name, or a plugin's name or path; or
  std::string config;                          // --config: the data set of an experiment
  std::vector<std::string> overrides;          // --set, of the experiment
  std::string root;                            // --root
  std::map<std::string, std::string> options;  // --option key=value
  int64_t seed = 42;                           // --seed
  std::vector<std::string> plugin_paths;       // --plugin-path
  std::string split = "train";                 // --split
  int64_t sample = 0;                          // --sample
  int64_t epoch = 0;                           // --epoch
};

// Returns the text to print. Throws Error.
std::string show(const Request& request);

// The text of `ddprun data info`, in parts that end in a newline.

// One split and its statistics.
struct SplitSheet {
  std::string name;  // "train", "test"
  const Dataset* dataset = nullptr;
  data::Survey survey;
};

// `mnist: handwritten digits, from IDX files (comes with ddprun)`; for a plugin, its version and path.
std::string dataset_title(const ddprun_dataset_plugin& table, const std::string& path);

// Samples, shapes and types; the value ranges of the inputs; the classes with their counts, or the value ranges of the
// targets. Needs at least one split; all have the same fields and classes.
std::string dataset_sheet(const std::vector<SplitSheet>& splits);

// `class 5 "Sandal"`, or only the number if that is the name; for regression the values: "2.5 -1".
std::string target_text(const Dataset& dataset, const data::Sample& sample);

// Inputs and targets of samples, numbered from `first`: one line each, long ones cut.
std::string sample_table(const Dataset& dataset, int64_t first, const std::vector<data::Sample>& samples);

}  // namespace ddprun::info
