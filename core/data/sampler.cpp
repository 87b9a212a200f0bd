#include "data/sampler.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "data/datasets.hpp"
#include "ddprun/error.hpp"

namespace ddprun::data {
namespace {

void check_size(int64_t dataset_size) {
  if (dataset_size >= 0) return;
  throw Error(ExitCode::usage, "data set of " + std::to_string(dataset_size) + " samples: expected 0 or more");
}

std::vector<int64_t> in_order(int64_t n) {
  std::vector<int64_t> indices(static_cast<std::size_t>(n));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return indices;
}

// Fisher and Yates (1938) in the form of Durstenfeld (1964): each position gets one of the remaining indices.
std::vector<int64_t> shuffle_forwards(int64_t n, std::mt19937& generator) {
  std::vector<int64_t> indices = in_order(n);
  for (int64_t i = 0; i < n - 1; ++i) {
    const auto ahead = static_cast<int64_t>(generator() % static_cast<uint64_t>(n - i));
    std::swap(indices[static_cast<std::size_t>(i)], indices[static_cast<std::size_t>(i + ahead)]);
  }
  return indices;
}

// The inside-out form: index i goes to an earlier position, whose index moves to the end.
std::vector<int64_t> shuffle_inside_out(int64_t n, std::mt19937& generator) {
  std::vector<int64_t> indices(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const uint64_t high = generator();
    const uint64_t draw = high << 32 | generator();
    const std::size_t place = draw % (i + 1);
    indices[i] = indices[place];
    indices[place] = static_cast<int64_t>(i);
  }
  return indices;
}

class DistributedSampler : public Sampler {
 public:
  DistributedSampler(int64_t dataset_size, int rank, int world, uint64_t seed, bool shuffle, Last last)
      : dataset_size_(dataset_size), rank_(rank), world_(world), seed_(seed), shuffle_(shuffle), last_(last) {
    check_size(dataset_size);
    if (world < 1) throw Error(ExitCode::usage, "world size " + std::to_string(world) + ": expected 1 or more");
    check_rank(rank);
  }

  // Every world-th index of the permutation, starting at the rank. Positions past its end start again at the front,
  // several times if the data set is smaller than the world.
  std::vector<int64_t> indices(int64_t epoch) const override {
    const auto seed = seed_ + static_cast<uint64_t>(epoch);
    const std::vector<int64_t> all = shuffle_ ? randperm(dataset_size_, seed) : in_order(dataset_size_);
    std::vector<int64_t> mine(static_cast<std::size_t>(size(rank_)));
    for (std::size_t i = 0; i < mine.size(); ++i) {
      mine[i] = all[(static_cast<std::size_t>(rank_) + i * static_cast<std::size_t>(world_)) % all.size()];
    }
    return mine;
  }

  int64_t size(int rank) const override {
    check_rank(rank);
    const int64_t whole_rounds = dataset_size_ / world_;
    const int64_t rest = dataset_size_ % world_;
    switch (last_) {
      case Last::pad: return whole_rounds + (rest > 0 ? 1 : 0);
      case Last::drop: return whole_rounds;
      case Last::exact: return whole_rounds + (rank < rest ? 1 : 0);
    }
    throw Error(ExitCode::failure, "unknown way to end an epoch");
  }

 private:
  void check_rank(int rank) const {
    if (rank >= 0 && rank < world_) return;
    throw Error(ExitCode::usage, "rank " + std::to_string(rank) + ": expected 0 to " + std::to_string(world_ - 1) +
                                     ", the world's last");
  }

  const int64_t dataset_size_;
  const int rank_, world_;
  const uint64_t seed_;
  const bool shuffle_;
  const Last last_;
};

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

std::unique_ptr<Sampler> distributed_sampler(int64_t dataset_size, int rank, int world, uint64_t seed, bool shuffle,
                                             Last last) {
  return std::make_unique<DistributedSampler>(dataset_size, rank, world, seed, shuffle, last);
}

std::vector<int64_t> randperm(int64_t n, uint64_t seed) {
  // For larger n PyTorch draws 64 bits per swap, since 32 would favour some indices, and shuffles inside out.
  constexpr int64_t wide_from = std::numeric_limits<uint32_t>::max() / 20;
  check_size(n);
  std::mt19937 generator(static_cast<uint32_t>(seed));  // PyTorch, too, uses only the low 32 bits of the seed
  return n < wide_from ? shuffle_forwards(n, generator) : shuffle_inside_out(n, generator);
}

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
