// DataLoader: the batches of a data set, as tensors, for one rank.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "data/loader.hpp"
#include "data/sampler.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::train {

class Upload;

// The samples of one virtual rank in a step.
struct PartSize {
  int64_t samples = 0;
  double weight = 1;  // as TensorBatch::weight
};

// One rank's samples of one step. On a CPU the tensors are views of the DataLoader's memory and are valid until the
// next call of next(). On a GPU they own their memory.
struct TensorBatch {
  torch::Tensor input;   // [size, input shape...]
  torch::Tensor target;  // [size, target shape...]
  int64_t size = 0;      // 0: this rank has no sample in this step, but other ranks have (last = "exact")
  // The loss is multiplied by this weight, so that the average over the ranks' gradients equals the gradient over all
  // samples of the step: size * world / (samples of all ranks). It is 1 if all ranks have the same number of samples.
  double weight = 1;
  std::vector<PartSize> parts = {};  // of virtual ranks, in their order; empty without
};

// The batches of the virtual ranks of a batch; without them, the batch itself. Each begins at a multiple of 64 bytes
// (on a GPU: 256), as a batch does, because the rounding of a matrix product may depend on it.
std::vector<TensorBatch> parts_of(const TensorBatch& batch);

// Gradient accumulation: splits a batch into `count` parts in the order of its samples. The sizes differ by at most
// one, the larger ones come first. A batch with fewer samples than `count` gives one part per sample. The parts are
// views of the batch. The weight of a part is the batch's weight times the part's fraction of the samples, so that the
// sum over the parts of weight * gradient of the mean loss equals the weighted gradient of the whole batch. The batch
// must hold at least one sample.
std::vector<TensorBatch> micro_batches(const TensorBatch& batch, int64_t count);

// Where batches are placed.
struct Target {
  torch::Device device = torch::kCPU;
  bool pinned = true;  // for a GPU: page-locked host memory, so that copies overlap with computation
};

// Whose batches a DataLoader gives: those of `rank` of `world`. With virtual_ranks > 0: those of the virtual ranks
// rank, rank + 1, ... rank + virtual_ranks - 1 of `world`.
struct LoadedRanks {
  int rank = 0;
  int world = 1;
  int virtual_ranks = 0;  // 0: none
};

// Makes the sampler of a rank.
using SamplerOf = std::function<std::unique_ptr<Sampler>(int rank)>;

// Steps of an epoch, equal on all ranks: as many as the rank with the most samples needs, or with Last::drop as many as
// it has full batches (drop_last of PyTorch's DataLoader). `batch_size` is per rank.
int64_t steps_of_epoch(const Sampler& sampler, int64_t batch_size, int world, Last last);

// Single-threaded. The data set must outlive it.
class DataLoader {
 public:
  DataLoader(const Dataset& dataset, SamplerOf sampler_of, int64_t batch_size, LoadedRanks ranks,
             data::LoaderOptions loader, Target target = {}, Last last = Last::pad);
  DataLoader(DataLoader&&) noexcept;
  ~DataLoader();

  // Steps of an epoch; equal on all ranks.
  int64_t steps() const { return steps_; }
  int64_t batch_size() const { return batch_size_; }
  const Dataset& dataset() const { return dataset_; }
  // The most virtual ranks of a rank; 1 without virtual ranks.
  int64_t most_parts(int ranks) const { return ranks_.virtual_ranks > 0 ? (ranks_.world + ranks - 1) / ranks : 1; }

  // Begins an epoch (from 0) at one of its steps (from 0). Skipped steps are neither sampled nor loaded. Loading runs
  // in the background from here on.
  void start(int64_t epoch, int64_t from_step = 0);
  // Splits the samples of each step among the ranks in proportion to these weights, from the next start() on. The
  // samples of a step stay the same. Empty: as the sampler splits them. The weights must be equal on all ranks.
  void set_batch_weights(std::vector<double> weights) { batch_weights_ = std::move(weights); }
  // Samples of a full step by rank; empty if no batch weights are set.
  std::vector<int64_t> samples_per_rank() const;

  // Loads the next batch; false at the end of the epoch. For a GPU the copy may still be running on a stream of its
  // own: the device's current stream waits for it, this thread does not. If the batch after it is already loaded, its
  // copy starts too. Throws what the data set threw.
  bool next(TensorBatch& batch);

 private:
  bool load(TensorBatch& batch);
  std::optional<TensorBatch> fetch();
  std::vector<int64_t> sizes(int64_t step) const;
  data::Batches batches(int64_t epoch) const;

  const Dataset& dataset_;
  SamplerOf sampler_of_;
  int64_t batch_size_;
  LoadedRanks ranks_;
  std::unique_ptr<Sampler> sampler_;   // of ranks_.rank
  std::vector<double> batch_weights_;  // by rank; empty: equal
  int64_t steps_;
  int64_t step_ = 0;  // in the epoch, from 0
  std::unique_ptr<data::Loader> loader_;
  std::unique_ptr<Upload> upload_;    // to a GPU; else null
  std::optional<TensorBatch> ahead_;  // a batch whose copy has started
};

}  // namespace ddprun::train
