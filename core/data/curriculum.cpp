#include "data/curriculum.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

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
        places_(distributed_sampler(static_cast<int64_t>(order_.size()), rank, world, seed, false, last)) {}

  std::vector<int64_t> indices(int64_t epoch) const override {
    const std::vector<int64_t> all = draw(epoch);
    std::vector<int64_t> mine = places_->indices(epoch);
    for (int64_t& index : mine) index = all[static_cast<std::size_t>(index)];
    return mine;
  }
  int64_t size(int rank) const override { return places_->size(rank); }

 private:
  // The epoch over all ranks.
  std::vector<int64_t> draw(int64_t epoch) const {
    const int64_t eligible = eligible_samples(curriculum_, epoch);
    const uint64_t seed = seed_ + static_cast<uint64_t>(epoch);
    if (eligible == static_cast<int64_t>(order_.size())) return randperm(eligible, seed);
    std::vector<int64_t> all;
    for (uint64_t round = 0; all.size() < order_.size(); ++round) {
      for (const int64_t place : randperm(eligible, round == 0 ? seed : mix(seed ^ mix(round)))) {
        if (all.size() < order_.size()) all.push_back(order_[static_cast<std::size_t>(place)]);
      }
    }
    return all;
  }

  const Curriculum curriculum_;
  const std::vector<int64_t> order_;  // easiest first
  const uint64_t seed_;
  const std::unique_ptr<Sampler> places_;  // the positions of this rank in the epoch
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

}  // namespace ddprun::data
