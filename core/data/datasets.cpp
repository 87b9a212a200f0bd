#include "data/datasets.hpp"

#include "base/words.hpp"
#include "data/idx_dataset.hpp"
#include "data/linear.hpp"
#include "data/options.hpp"
#include "data/synthetic.hpp"

namespace ddprun::data {
namespace {

using Opener = Splits (*)(const DataOptions&);

const std::vector<std::pair<std::string, Opener>>& openers() {
  static const std::vector<std::pair<std::string, Opener>> table = {{"linear", open_linear},
                                                                    {"mnist", open_mnist},
                                                                    {"fashion-mnist", open_fashion_mnist},
                                                                    {"idx", open_idx},
                                                                    {"synthetic", open_synthetic}};
  return table;
}

}  // namespace

std::vector<std::string> dataset_names() {
  std::vector<std::string> names;
  for (const auto& [name, opener] : openers()) names.push_back(name);
  return names;
}

Splits open_dataset(const DataOptions& data) {
  for (const auto& [name, open] : openers()) {
    if (name == data.name) return open(data);
  }
  const auto names = dataset_names();
  throw DatasetError("name", expected_one_of(data.name, names));
}

}  // namespace ddprun::data
