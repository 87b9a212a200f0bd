// Reads the files in a run's folder, as a user's own tools would.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "checkpoint/folder.hpp"
#include "support/read_file.hpp"

namespace ddprun::e2e {

inline std::vector<nlohmann::json> json_lines(const std::filesystem::path& file) {
  std::vector<nlohmann::json> records;
  for (const std::string& line : testing::read_lines(file)) records.push_back(nlohmann::json::parse(line));
  return records;
}

inline nlohmann::json summary_of(const std::filesystem::path& run) {
  return nlohmann::json::parse(testing::read_file(run / "summary.json"));
}

inline std::vector<nlohmann::json> steps_of(const std::filesystem::path& run, int rank) {
  return json_lines(run / ("steps-rank" + std::to_string(rank) + ".jsonl"));
}

// The loss of each step: the mean over the samples of all ranks.
inline std::vector<double> losses_of(const std::filesystem::path& run, int world) {
  std::vector<double> sums, samples;
  for (int rank = 0; rank < world; ++rank) {
    const auto records = steps_of(run, rank);
    sums.resize(std::max(sums.size(), records.size()));
    samples.resize(sums.size());
    for (std::size_t step = 0; step < records.size(); ++step) {
      const double count = records[step].at("samples");
      if (count > 0) sums[step] += count * records[step].at("loss").get<double>();
      samples[step] += count;
    }
  }
  for (std::size_t step = 0; step < sums.size(); ++step) sums[step] /= samples[step];
  return sums;
}

inline std::vector<checkpoint::Commit> commits_of(const std::filesystem::path& run) {
  return checkpoint::list_commits((run / "checkpoints").string());
}

// Name -> values of the newest checkpoint, which must all be float32.
using Weights = std::map<std::string, std::vector<float>>;
inline Weights weights_in(const std::filesystem::path& checkpoint) {
  const auto file = checkpoint::read_safetensors(checkpoint);
  Weights weights;
  for (const auto& tensor : file.tensors) {
    if (tensor.name.ends_with("num_batches_tracked")) continue;
    if (tensor.dtype != "F32") throw std::runtime_error(tensor.name + " is of " + tensor.dtype);
    auto& values = weights[tensor.name];
    values.resize(tensor.data.size() / sizeof(float));
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  }
  return weights;
}
inline Weights weights_of(const std::filesystem::path& run) {
  return weights_in(commits_of(run).back().path);
}

// Name -> dtype and bytes of the newest checkpoint, for any dtype.
inline std::map<std::string, std::string> tensors_of(const std::filesystem::path& run) {
  const auto file = checkpoint::read_safetensors(commits_of(run).back().path);
  std::map<std::string, std::string> tensors;
  for (const auto& tensor : file.tensors) {
    tensors[tensor.name] =
        tensor.dtype + std::string(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  }
  return tensors;
}

// The largest difference between corresponding values; infinite if one is missing or not finite.
template <typename Number>
double distance(const std::vector<Number>& a, const std::vector<Number>& b) {
  if (a.size() != b.size() || a.empty()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    largest = std::isfinite(difference) ? std::max(largest, difference) : INFINITY;
  }
  return largest;
}
inline double distance(const Weights& a, const Weights& b) {
  if (a.size() != b.size() || a.empty()) return INFINITY;
  double largest = 0;
  for (const auto& [name, values] : a) {
    largest = std::max(largest, b.contains(name) ? distance(values, b.at(name)) : INFINITY);
  }
  return largest;
}

}  // namespace ddprun::e2e
