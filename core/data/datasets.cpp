#include "data/datasets.hpp"

#include "base/version.hpp"
#include "data/idx_dataset.hpp"
#include "data/linear.hpp"
#include "data/plugin_dataset.hpp"
#include "data/synthetic.hpp"
#include "ddprun/words.hpp"

namespace ddprun::data {
namespace {

template <Splits (*open)(const DatasetContext&)>
ddprun_dataset_plugin table(const char* name, const char* summary) {
  return detail::dataset_table<open>(name, version(), summary);
}

}  // namespace

const std::vector<ddprun_dataset_plugin>& builtin_datasets() {
  static const std::vector<ddprun_dataset_plugin> all = {
      table<open_linear>("linear", "a straight line with noise, computed"),
      table<open_mnist>("mnist", "handwritten digits, from IDX files"),
      table<open_fashion_mnist>("fashion-mnist", "pictures of clothes, from IDX files"),
      table<open_idx>("idx", "images and labels of one's own, from IDX files"),
      table<open_synthetic>("synthetic", "noise in the shape of images, computed"),
  };
  return all;
}

Splits open_dataset(const DataOptions& data) {
  std::vector<std::string> names;
  for (const ddprun_dataset_plugin& table : builtin_datasets()) {
    if (table.name == data.name) return open_splits(table, data.context);
    names.push_back(table.name);
  }
  throw DatasetError("name", expected_one_of(data.name, names));
}

}  // namespace ddprun::data
