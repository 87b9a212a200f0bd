#include "data/difficulty.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

#include "base/parse_number.hpp"
#include "data/datasets.hpp"
#include "data/pass.hpp"

namespace ddprun::data {
namespace {

constexpr const char* kKey = "difficulty";

std::vector<double> magnitudes(const Dataset& dataset, int workers, std::span<const int64_t> subset) {
  const std::size_t elements = dataset.input().elements();
  std::vector<double> scores;
  for_each_input(dataset, subset, workers, kKey, [&](const float* input) {
    double sum = 0;
    for (std::size_t i = 0; i < elements; ++i) sum += std::abs(static_cast<double>(input[i]));
    scores.push_back(elements == 0 ? 0 : sum / static_cast<double>(elements));
  });
  return scores;
}

// The line is the score, between spaces and before a carriage return. Nothing if it is no finite number.
std::optional<double> score_in(std::string_view line) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) line.remove_suffix(1);
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  const auto score = parse_number<double>(line);
  return score && std::isfinite(*score) ? score : std::nullopt;
}

std::vector<double> read_scores(const std::string& path, int64_t samples) {
  std::ifstream file(path);
  if (!file) throw DatasetError(kKey, path + ": " + std::strerror(errno) + "; give \"magnitude\" or a file of scores");
  std::vector<double> scores;
  for (std::string line; std::getline(file, line);) {
    const auto score = score_in(line);
    if (!score) throw DatasetError(kKey, path + ":" + std::to_string(scores.size() + 1) + ": expected one number");
    scores.push_back(*score);
  }
  if (static_cast<int64_t>(scores.size()) != samples) {
    throw DatasetError(kKey, path + ": has " + std::to_string(scores.size()) + " lines, and there are " +
                                 std::to_string(samples) + " training samples");
  }
  return scores;
}

}  // namespace

std::vector<double> difficulties(const std::string& source, const Dataset& dataset, int workers,
                                 std::span<const int64_t> subset) {
  if (source == kMagnitude) return magnitudes(dataset, workers, subset);
  std::vector<double> all = read_scores(source, dataset.size());
  if (subset.empty()) return all;
  std::vector<double> chosen;
  for (const int64_t index : subset) chosen.push_back(all[static_cast<std::size_t>(index)]);
  return chosen;
}

}  // namespace ddprun::data
