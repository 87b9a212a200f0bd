#include "data/curriculum.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>

#include "base/text.hpp"
#include "data/datasets.hpp"
#include "data/loader.hpp"
#include "ddprun/plugin/detail/mix.hpp"

namespace ddprun::data {
namespace {

std::vector<int64_t> easiest_first(const std::vector<double>& difficulty) {
  std::vector<int64_t> order(difficulty.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return difficulty[static_cast<std::size_t>(a)] < difficulty[static_cast<std::size_t>(b)];
  });
  return order;
}

class CurriculumSampler final : public Sampler {
 public:
  CurriculumSampler(Curriculum curriculum, int rank, int world, uint64_t seed, Last last)
      : curriculum_(std::move(curriculum)),
        order_(easiest_first(curriculum_.difficulty)),
        seed_(seed),
        positions_(distributed_sampler(static_cast<int64_t>(order_.size()), rank, world, seed, false, last)) {}

  std::vector<int64_t> indices(int64_t epoch) const override {
    const std::vector<int64_t> all = draw(epoch);
    std::vector<int64_t> mine = positions_->indices(epoch);
    for (int64_t& index : mine) index = all[static_cast<std::size_t>(index)];
    return mine;
  }
  int64_t size(int rank) const override { return positions_->size(rank); }

 private:
  // The epoch over all ranks.
  std::vector<int64_t> draw(int64_t epoch) const {
    const int64_t eligible = eligible_samples(curriculum_, epoch);
    const uint64_t seed = seed_ + static_cast<uint64_t>(epoch);
    if (eligible == static_cast<int64_t>(order_.size())) return randperm(eligible, seed);
    std::vector<int64_t> all;
    for (uint64_t round = 0; all.size() < order_.size(); ++round) {
      for (const int64_t position : randperm(eligible, round == 0 ? seed : mix(seed ^ mix(round)))) {
        if (all.size() < order_.size()) all.push_back(order_[static_cast<std::size_t>(position)]);
      }
    }
    return all;
  }

  const Curriculum curriculum_;
  const std::vector<int64_t> order_;  // easiest first
  const uint64_t seed_;
  const std::unique_ptr<Sampler> positions_;  // the positions of this rank in the epoch
};

}  // namespace

int64_t eligible_samples(const Curriculum& curriculum, int64_t epoch) {
  const auto samples = static_cast<int64_t>(curriculum.difficulty.size());
  if (epoch >= curriculum.epochs) return samples;
  const double progress = static_cast<double>(epoch) / static_cast<double>(curriculum.epochs);
  const double fraction = curriculum.start + (1 - curriculum.start) * progress;
  return std::clamp<int64_t>(std::llround(fraction * static_cast<double>(samples)), std::min<int64_t>(1, samples),
                             samples);
}

std::unique_ptr<Sampler> curriculum_sampler(Curriculum curriculum, int rank, int world, uint64_t seed, Last last) {
  return std::make_unique<CurriculumSampler>(std::move(curriculum), rank, world, seed, last);
}

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
