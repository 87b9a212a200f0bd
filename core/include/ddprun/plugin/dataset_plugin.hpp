// ddprun/plugin/dataset_plugin.hpp: a data set as a C++ class, and the C table of dataset_entry.h made from it.
// Torch-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ddprun/plugin/dataset_entry.h"
#include "ddprun/plugin/options.hpp"

namespace ddprun {

enum class ElementType : uint32_t { float32 = DDPRUN_ELEMENT_FLOAT32, int64 = DDPRUN_ELEMENT_INT64 };

// Bytes of one element.
constexpr std::size_t size_of(ElementType type) {
  return type == ElementType::float32 ? 4 : 8;
}

// Shape and type of one field of one sample, without the batch dimension. Empty shape: a scalar.
struct Field {
  std::vector<int64_t> shape;
  ElementType type = ElementType::float32;

  std::size_t elements() const {
    std::size_t product = 1;
    for (const int64_t extent : shape) product *= static_cast<std::size_t>(extent);
    return product;
  }
  std::size_t bytes() const { return elements() * size_of(type); }
};

// The epoch number for validation samples. A training sample is then without random changes, as the test split would
// give it.
inline constexpr int64_t kPlainEpoch = DDPRUN_DATASET_PLAIN_EPOCH;

// One split: samples that can be fetched by index. All functions are const and may be called from many threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;                             // samples, 1 or more
  virtual const Field& input() const = 0;                       // e.g. {1, 28, 28} float32
  virtual const Field& target() const = 0;                      // e.g. {} int64 (a class), or {1} float32
  virtual const std::vector<std::string>& classes() const = 0;  // names; empty for regression
  virtual int64_t vocabulary() const { return 0; }              // inputs are tokens from 0 to below it; 0: no tokens
  // Writes the samples of `indices` one after another: inputs has indices.size() * input().bytes() bytes, targets
  // likewise; the memory is the caller's. A sample is a function of the data set's seed, `epoch` (from 0, or
  // kPlainEpoch) and its index alone; a data set without randomness ignores the epoch. Throws InvalidDataset that names
  // file and offset when a sample cannot be read, std::out_of_range for an index outside the data set.
  virtual void fetch(std::span<const int64_t> indices, int64_t epoch, void* inputs, void* targets) const = 0;
};

// The splits of one data set. Both have the same fields and classes.
struct Splits {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;  // null where the data set has none
};

// What a data set is opened with.
struct DatasetContext {
  std::string root;                            // data.root, relative to the current folder; "": not given
  std::map<std::string, std::string> options;  // data.options, as text; DatasetOptions reads them
  uint64_t seed = 0;                           // experiment.seed: of all that is random
};

// An error that the user can correct: in an option, a folder, a file. what() is only the reason, in one line; the host
// puts the place in the config before it. key() is the key with the error, below "data.": "root" or "options.samples".
class InvalidDataset : public std::runtime_error {
 public:
  InvalidDataset(std::string key, const std::string& reason) : std::runtime_error(reason), key_(std::move(key)) {}
  const std::string& key() const noexcept { return key_; }

 private:
  std::string key_;
};

// Throws std::out_of_range for an index that is not in [0, size). For implementations of Dataset::fetch.
void check_indices(std::span<const int64_t> indices, int64_t size);

}  // namespace ddprun

#include "ddprun/plugin/detail/dataset_table.hpp"  // IWYU pragma: export

// Defines the plugin's one exported symbol. `open` is a function Splits(const ddprun::DatasetContext&) that throws
// InvalidDataset; name, version and summary are string literals. The last argument is an array of ddprun_option_spec,
// for a data set that takes options (options.hpp).
#define DDPRUN_DATASET_PLUGIN(open, plugin_name, plugin_version, plugin_summary, ...) \
  DDPRUN_PLUGIN_EXPORT const ddprun_dataset_plugin ddprun_dataset_plugin_v1 =         \
      ::ddprun::detail::dataset_table<&open>(plugin_name, plugin_version, plugin_summary __VA_OPT__(, ) __VA_ARGS__)
