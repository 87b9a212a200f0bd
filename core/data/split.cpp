#include "data/split.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "data/datasets.hpp"
#include "data/sampler.hpp"

namespace ddprun::data {
namespace {

class SubsetSampler final : public Sampler {
 public:
  SubsetSampler(std::unique_ptr<Sampler> positions, std::span<const int64_t> subset)
      : positions_(std::move(positions)), subset_(subset) {}

  std::vector<int64_t> indices(int64_t epoch) const override {
    std::vector<int64_t> indices = positions_->indices(epoch);
    for (int64_t& index : indices) index = subset_[static_cast<std::size_t>(index)];
    return indices;
  }
  int64_t size(int rank) const override { return positions_->size(rank); }

 private:
  const std::unique_ptr<Sampler> positions_;
  const std::span<const int64_t> subset_;
};

}  // namespace

Split random_split(int64_t size, int64_t count, uint64_t seed) {
  Split split{randperm(size, seed), {}};
  const auto first = split.train.end() - count;
  split.validation.assign(first, split.train.end());
  split.train.erase(first, split.train.end());
  return split;
}

int64_t validation_samples(double validation, int64_t size) {
  const double count = validation < 1 ? std::floor(validation * static_cast<double>(size)) : validation;
  const std::string there = "the training set has " + std::to_string(size) + (size == 1 ? " sample" : " samples");
  if (count < 1) throw DatasetError("validation", "leaves no sample to validate on: " + there + "; use a larger part");
  if (count >= static_cast<double>(size)) {
    throw DatasetError("validation", "leaves no sample to train on: " + there + "; use fewer");
  }
  return static_cast<int64_t>(count);
}

std::unique_ptr<Sampler> subset_sampler(std::unique_ptr<Sampler> sampler, std::span<const int64_t> subset) {
  if (subset.empty()) return sampler;
  return std::make_unique<SubsetSampler>(std::move(sampler), subset);
}

}  // namespace ddprun::data
