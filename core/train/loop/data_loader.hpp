// DataLoader: a data set, as one rank's tensors, batch by batch.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>
#include <vector>

#include "data/loader.hpp"
#include "data/sampler.hpp"
#include "ddprun/plugin/dataset_plugin.hpp"

namespace ddprun::train {

class Upload;

// One rank's part of one step. On a CPU the tensors are views of the loader's memory, valid until the next call of
// next(); on a GPU they keep memory of their own.
struct TensorBatch {
  torch::Tensor input;   // [size, input shape...]
  torch::Tensor target;  // [size, target shape...]
  int64_t size = 0;      // 0: the other ranks have samples in this step, this one has none (last = "exact")
  // What the loss is to be multiplied with, so that the average of the ranks' gradients is that of all samples of the
  // step: size * world / (samples of all ranks). 1 where all ranks have equally many.
  double weight = 1;
};

// Gradient accumulation: `count` parts of a batch in the order of its samples, sizes equal or one apart, the larger
// first; one part per sample where there are fewer samples. Views of the batch's tensors. Each part's weight is the
// batch's times its fraction of the samples: the sum over the parts of weight * gradient of the mean loss is the
// weighted gradient of the whole batch's. The batch holds at least one sample.
std::vector<TensorBatch> micro_batches(const TensorBatch& batch, int64_t count);

// Where batches go.
struct Target {
  torch::Device device = torch::kCPU;
  bool pinned = true;  // for a GPU: the loader's memory is page-locked, so that copies go on beside everything else
};

// Of an epoch, equal on all ranks: as many as the rank with the most samples needs. `batch_size` is a rank's.
int64_t steps_of_epoch(const Sampler& sampler, int64_t batch_size, int world);

// One thread. The data set must outlive it.
class DataLoader {
 public:
  DataLoader(const Dataset& dataset, std::unique_ptr<Sampler> sampler, int64_t batch_size, int rank, int world,
             data::LoaderOptions loader, Target target = {});
  DataLoader(DataLoader&&) noexcept;
  ~DataLoader();

  // Steps of an epoch; equal on all ranks.
  int64_t steps() const { return steps_; }
  int64_t batch_size() const { return batch_size_; }
  const Dataset& dataset() const { return dataset_; }

  // Begins an epoch (from 0) at one of its steps (from 0): what lies before it is neither chosen nor loaded. Loading
  // goes on in the background from here.
  void start(int64_t epoch, int64_t from_step = 0);
  // The samplers of all ranks, in their order: set_batch_weights() needs them.
  void know_all_ranks(std::vector<std::unique_ptr<Sampler>> samplers) { samplers_ = std::move(samplers); }
  // Divides the samples of each step, which stay the same, among the ranks by weight, from the next start() on; empty:
  // as the sampler does. Equal on all ranks.
  void set_batch_weights(std::vector<double> weights) { batch_weights_ = std::move(weights); }
  // How many samples of a full step each rank has, in rank order; empty where no batch weights are set.
  std::vector<int64_t> samples_per_rank() const;

  // The next step's batch, or false at the end of the epoch. For a GPU: its copy may still be under way, on a stream of
  // its own; the device's current stream waits for it, this thread does not. Where the batch after it is fetched
  // already, its copy begins too. Throws what the data set threw.
  bool next(TensorBatch& batch);

 private:
  bool load(TensorBatch& batch);
  std::optional<TensorBatch> fetch();
  int64_t samples_of(int rank, int64_t step) const;
  std::vector<int64_t> sizes(int64_t step) const;
  data::Batches batches(int64_t epoch) const;

  const Dataset& dataset_;
  std::unique_ptr<Sampler> sampler_;
  std::vector<std::unique_ptr<Sampler>> samplers_;  // of all ranks, or none
  std::vector<double> batch_weights_;               // by rank; empty: equal
  int64_t batch_size_;
  int rank_;
  int world_;
  int64_t steps_;
  int64_t step_ = 0;  // of the epoch, from 0
  std::unique_ptr<data::Loader> loader_;
  std::unique_ptr<Upload> upload_;    // to a GPU; else null
  std::optional<TensorBatch> ahead_;  // its copy has begun
};

}  // namespace ddprun::train
