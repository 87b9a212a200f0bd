#include "data/sampler.hpp"

#include <algorithm>
#include <cstddef>

#include "ddprun/ddp.hpp"
#include "ddprun/error.hpp"

namespace ddprun {

DistributedSampler::DistributedSampler(std::size_t size, int num_replicas, int rank, bool shuffle, uint64_t seed,
                                       Last last)
    : sampler_(data::distributed_sampler(static_cast<int64_t>(size), rank, num_replicas, seed, shuffle, last)) {
  set_epoch(0);
}

void DistributedSampler::set_epoch(int64_t epoch) {
  epoch_ = epoch;
  indices_ = sampler_->indices(epoch);
  next_ = 0;
}

void DistributedSampler::reset(std::optional<std::size_t> new_size) {
  if (new_size) throw Error(ExitCode::usage, "DistributedSampler: the size of the data set cannot change");
  next_ = 0;
}

std::optional<std::vector<std::size_t>> DistributedSampler::next(std::size_t batch_size) {
  if (next_ == indices_.size()) return std::nullopt;
  const auto begin = indices_.begin() + static_cast<std::ptrdiff_t>(next_);
  next_ = std::min(next_ + batch_size, indices_.size());
  return std::vector<std::size_t>(begin, indices_.begin() + static_cast<std::ptrdiff_t>(next_));
}

void DistributedSampler::save(torch::serialize::OutputArchive& archive) const {
  archive.write("epoch", torch::tensor(epoch_, torch::kInt64), true);
  archive.write("next", torch::tensor(static_cast<int64_t>(next_), torch::kInt64), true);
}

void DistributedSampler::load(torch::serialize::InputArchive& archive) {
  torch::Tensor epoch = torch::empty(1, torch::kInt64), next = torch::empty(1, torch::kInt64);
  archive.read("epoch", epoch, true);
  archive.read("next", next, true);
  set_epoch(epoch.item<int64_t>());
  next_ = static_cast<std::size_t>(next.item<int64_t>());
}

}  // namespace ddprun
