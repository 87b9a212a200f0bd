// Opens data sets, valid and invalid ones, and fetches samples.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "data/datasets.hpp"

namespace ddprun::testing {

// A built-in data set; no plugins are available.
inline Splits open_builtin(const data::DataOptions& options) {
  return data::open_dataset(options, plugin::Registry({}));
}

// "key: reason" of the error; "opened" if there is none.
inline std::string builtin_error(const data::DataOptions& options) {
  try {
    open_builtin(options);
  } catch (const data::DatasetError& error) {
    if (error.code() != ExitCode::usage) return "wrong exit code";
    return error.key() + ": " + error.what();
  }
  return "opened";
}

template <class Target>
struct Samples {
  std::vector<float> inputs;
  std::vector<Target> targets;
  bool operator==(const Samples&) const = default;
};

template <class Target>
Samples<Target> fetch(const Dataset& dataset, const std::vector<int64_t>& indices) {
  Samples<Target> samples;
  samples.inputs.resize(indices.size() * dataset.input().elements());
  samples.targets.resize(indices.size() * dataset.target().elements());
  dataset.fetch(indices, 0, samples.inputs.data(), samples.targets.data());
  return samples;
}

template <class Target>
Samples<Target> fetch_all(const Dataset& dataset) {
  std::vector<int64_t> indices(static_cast<std::size_t>(dataset.size()));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return fetch<Target>(dataset, indices);
}

}  // namespace ddprun::testing
