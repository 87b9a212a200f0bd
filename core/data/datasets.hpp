// The data sets that are known by name, and how they are opened.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "data/dataset.hpp"

namespace ddprun::data {

// The [data] keys that say what to open.
struct DataOptions {
  std::string name;                            // one of dataset_names()
  std::string root;                            // folder of the files; "": the data set's own default
  std::map<std::string, std::string> options;  // data.options, as text
  uint64_t seed = 0;                           // experiment.seed: of what is computed instead of read
};

// A fault of the data set or of its keys (exit code usage). what() is the reason alone, so that the caller can put the
// place in the config before it; key() is the key at fault, below "data.": "name", "root" or "options.samples".
class DatasetError : public Error {
 public:
  DatasetError(std::string key, const std::string& reason) : Error(ExitCode::usage, reason), key_(std::move(key)) {}
  const std::string& key() const noexcept { return key_; }

 private:
  std::string key_;
};

// The names that open_dataset takes.
std::vector<std::string> dataset_names();

// Opens both splits of a data set and checks all there is to check: options, every file to its last byte, every label.
//
//   linear         y = slope x + intercept + noise e, x and e standard normal; input {1}, target {1}, both float32.
//                  Options: samples (10000), test_samples (1000), slope (2), intercept (3), noise (0.1),
//                  seed (the experiment's).
//   mnist          IDX files in root (default "data/mnist" below the current folder), plain or .gz; input {1, rows,
//   cols} fashion-mnist  float32 in [0, 1], target {} int64. Default root of fashion-mnist: where Debian's package
//                  dataset-fashion-mnist puts it. Options: mean (0), std (1), which make it (pixel / 255 - mean) / std.
//   idx            The same for files of the user's own; root is required. One option more: classes (largest label +
//   1). synthetic      Noise in the shape of images, for benchmarks; a sample depends on seed and index alone. Options:
//                  shape ("3x224x224"), classes (1000), samples (10000), test_samples (1000), seed (the experiment's).
//
// Throws DatasetError.
Splits open_dataset(const DataOptions& data);

}  // namespace ddprun::data
