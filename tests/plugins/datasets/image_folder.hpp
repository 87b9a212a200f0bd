// The plugin image-folder as ddprun loads it: through the registry, opened by the host's side of the ABI boundary.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "data/datasets.hpp"
#include "data/opening.hpp"
#include "plugin/registry.hpp"
#include "plugins/datasets/pictures.hpp"

namespace ddprun::testing {

using OptionMap = std::map<std::string, std::string>;

inline Splits open_folder(const std::string& root, const OptionMap& options = {}, uint64_t seed = 0) {
  return data::open_dataset({"image-folder", {root, options, seed}}, plugin::Registry({DDPRUN_PLUGINS}));
}

// "key: reason" of the error that `call` throws, with paths below the root; "no error" if there is none.
template <class Call>
std::string dataset_error(const std::string& root, Call call) {
  try {
    call();
  } catch (const data::DatasetError& error) {
    std::string text = error.key() + ": " + error.what();
    for (std::size_t at; !root.empty() && (at = text.find(root + "/")) != std::string::npos;) {
      text.erase(at, root.size() + 1);
    }
    return text;
  }
  return "no error";
}

inline std::string opening_error(const PictureFolder& folder, const OptionMap& options = {}) {
  return dataset_error(folder.root(), [&] { open_folder(folder.root(), options); });
}

// The pixels of one sample, as bytes in planes: those of the picture, if no option changed them.
inline std::vector<int> pixels(const Dataset& dataset, int64_t index) {
  std::vector<int> values;
  for (const float value : fetch<int64_t>(dataset, {index}).inputs) {
    values.push_back(static_cast<int>(std::lround(value * 255)));
  }
  return values;
}

// The only sample of a folder that holds `bytes` as a picture.
inline std::vector<int> pixels_of(const std::string& bytes, const OptionMap& options = {}) {
  const PictureFolder folder;
  folder.add("train/a/picture.png", bytes);
  return pixels(*open_folder(folder.root(), options).train, 0);
}

}  // namespace ddprun::testing
