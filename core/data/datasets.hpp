// data: data sets, the Sampler and the Loader. Torch-free: it fills plain memory, and train/ makes tensors of it. This
// header: the built-in data sets, and how to open a data set.
#pragma once

#include <string>
#include <vector>

#include "ddprun/error.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"
#include "plugin/registry.hpp"

namespace ddprun::data {

// The [data] keys that select a data set.
struct DataOptions {
  std::string name;  // one of builtin_datasets(), or a plugin's name or path
  DatasetContext context;
};

// An error of the data set or of its keys (exit code usage). what() is only the reason, so that the caller can add the
// place in the config; key() is the key below "data.": "name", "root" or "options.samples".
class DatasetError : public Error {
 public:
  DatasetError(std::string key, const std::string& reason) : Error(ExitCode::usage, reason), key_(std::move(key)) {}
  const std::string& key() const noexcept { return key_; }

 private:
  std::string key_;
};

// The built-in data sets, as the function tables that a plugin would export.
const std::vector<ddprun_dataset_plugin>& builtin_datasets();

// The folder, below the current one, where a data set is if data.root is empty; "" if it is not in the current folder.
std::string default_root(const std::string& name);

// Finds a data set: one of builtin_datasets(), with an empty path, or a plugin, by name or path. Throws
// DatasetError("name") that lists the available names, and Error(plugin) for a plugin that the registry rejects or that
// has the name of a built-in one. Thread-safe.
plugin::DatasetPlugin find_dataset(const std::string& name, const plugin::Registry& registry);

// registry.list(), with data set plugins rejected if they have the name of a built-in one.
std::vector<plugin::Listed> list_plugins(const plugin::Registry& registry);

// Opens both splits through a function table and checks what they report. The table must outlive them. Throws
// DatasetError if the data set rejects its input, Error(failure) for any other failure of the data set, and
// Error(plugin) if it violates its contract: its properties are impossible, the splits do not match, a label is not a
// class, or an exception crosses the ABI boundary. The splits throw the same. Messages of the data set become one line
// each.
Splits open_splits(const ddprun_dataset_plugin& table, const DatasetContext& context);

// Opens the splits of a data set through its function table and checks what they report. For a built-in data set, also
// checks the options, every byte of every file, and every label.
//
//   linear         y = slope x + intercept + noise e, x and e standard normal; input {1}, target {1}, both float32.
//                  Options: samples (10000), test_samples (1000), slope (2), intercept (3), noise (0.1),
//                  seed (the experiment's).
//   mnist          IDX files in root (default "data/mnist" below the current folder), plain or .gz, or in MNIST/raw
//   fashion-mnist  below root, as torchvision has them (FashionMNIST/raw); "idx3" may follow a dot, as in Kaggle's
//                  copies. Input {1, rows, cols} float32 in [0, 1], target {} int64. Default root of fashion-mnist:
//                  where Debian's package dataset-fashion-mnist puts it. Options: those of images; mean (0), std (1).
//   idx            The same for files of the user's own; root is required. One option more: classes (largest label
//                  + 1).
//   cifar10        The binary form in root (default "data/cifar10"); input {3, 32, 32}, target {} int64. Each file is
//                  looked for in root and in root/cifar-10-batches-bin, where the published archive is unpacked, plain
//                  before .gz. Options: those of images, mean (0.5) and std (0.5); train (data_batch_1.bin to
//                  data_batch_5.bin) and test (test_batch.bin): names of files, with commas between them.
//   (images)       image_size (0: as the files have it), mean, std: see
//                  ddprun/plugin/image_transform.hpp; random_crop (0), random_flip (false): for the training split
//                  only; samples, test_samples (all): use only the first ones.
//   synthetic      Noise in the shape of images, for benchmarks; a sample depends on seed and index alone. Options:
//                  shape ("3x224x224"), classes (1000), samples (10000), test_samples (1000), seed (the experiment's).
//
// The data sets returned throw DatasetError where the plugin calls its input invalid, else Error(failure). Throws what
// find_dataset() and open_splits() throw.
Splits open_dataset(const DataOptions& data, const plugin::Registry& registry);

}  // namespace ddprun::data
