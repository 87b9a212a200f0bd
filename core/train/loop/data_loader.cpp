#include "train/loop/data_loader.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/loader.hpp"
#include "train/device/streams.hpp"

namespace ddprun::train {

// Copies batches from the DataLoader's memory to a GPU while the GPU computes.
// Single-threaded; one copy at a time.
class Upload {
 public:
  explicit Upload(torch::Device device) : device_(device), stream_(side_stream(device)), copied_(device.type()) {}
  // Waits, as wait() does.
  ~Upload() {
    try {
      wait();
    } catch (const c10::Error&) {  // the GPU has failed; the thread that computes on it gets the same error
    }
  }

  // Queues the copy of a batch in host memory on a separate stream. The host memory must not change before wait()
  // returns.
  TensorBatch begin(const TensorBatch& host) {
    TensorBatch batch = host;
    const c10::StreamGuard on(stream_);
    for (torch::Tensor* tensor : {&batch.input, &batch.target}) {
      const torch::Tensor source = *tensor;
      *tensor = torch::empty(source.sizes(), source.options().device(device_));
      tensor->copy_(source, true);
    }
    copied_.record(stream_);
    return batch;
  }

  // Makes the device's current stream wait for the copy, and keeps the memory until the stream's work on it is done.
  void hand_out(const TensorBatch& batch) {
    const c10::Stream current = current_stream(device_);
    copied_.block(current);
    batch.input.record_stream(current);  // both were allocated on the other stream
    batch.target.record_stream(current);
  }

  // Blocks the host until the last copy is done. Its host memory may be reused then.
  void wait() { copied_.synchronize(); }

 private:
  const torch::Device device_;
  const c10::Stream stream_;
  c10::Event copied_;
};

namespace {

torch::Tensor view(void* memory, int64_t size, const Field& field) {
  std::vector<int64_t> shape{size};
  shape.insert(shape.end(), field.shape.begin(), field.shape.end());
  const auto type = field.type == ElementType::float32 ? torch::kFloat32 : torch::kInt64;
  return torch::from_blob(memory, shape, torch::TensorOptions().dtype(type));
}

// LibTorch allocates page-locked memory, so that its copies recognise it.
std::shared_ptr<std::byte> page_locked(std::size_t bytes) {
  const auto options = torch::TensorOptions().dtype(torch::kUInt8).pinned_memory(true);
  const auto memory = std::make_shared<torch::Tensor>(torch::empty({static_cast<int64_t>(bytes)}, options));
  return {memory, static_cast<std::byte*>(memory->data_ptr())};
}

data::LoaderOptions in_memory_for(const Target& target, data::LoaderOptions loader) {
  if (!target.device.is_cpu() && target.pinned) loader.memory = page_locked;
  return loader;
}

}  // namespace

int64_t steps_of_epoch(const Sampler& sampler, int64_t batch_size, int world, Last last) {
  const int64_t most_missing = last == Last::drop ? 0 : batch_size - 1;  // of the samples of a batch
  int64_t steps = 0;
  for (int rank = 0; rank < world; ++rank) {
    steps = std::max(steps, (sampler.size(rank) + most_missing) / batch_size);
  }
  return steps;
}

std::vector<TensorBatch> parts_of(const TensorBatch& batch) {
  if (batch.parts.empty()) return {batch};
  const auto aligned = [](torch::Tensor part) {
    const std::uintptr_t alignment = part.is_cpu() ? 64 : 256;  // what a batch of its own would have
    return reinterpret_cast<std::uintptr_t>(part.data_ptr()) % alignment == 0 ? part : part.clone();
  };
  std::vector<TensorBatch> parts;
  int64_t begin = 0;
  for (const auto& [samples, weight] : batch.parts) {
    parts.push_back({aligned(batch.input.narrow(0, begin, samples)), aligned(batch.target.narrow(0, begin, samples)),
                     samples, weight});
    begin += samples;
  }
  return parts;
}

std::vector<TensorBatch> micro_batches(const TensorBatch& batch, int64_t count) {
  const int64_t parts = std::min(count, batch.size);
  if (parts <= 1) return {batch};
  std::vector<TensorBatch> cut;
  int64_t begin = 0;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t size = batch.size / parts + (part < batch.size % parts ? 1 : 0);
    const double weight = batch.weight * static_cast<double>(size) / static_cast<double>(batch.size);
    cut.push_back({batch.input.narrow(0, begin, size), batch.target.narrow(0, begin, size), size, weight});
    begin += size;
  }
  return cut;
}

DataLoader::DataLoader(const Dataset& dataset, SamplerOf sampler_of, int64_t batch_size, LoadedRanks ranks,
                       data::LoaderOptions loader, Target target, Last last)
    : dataset_(dataset),
      sampler_of_(std::move(sampler_of)),
      batch_size_(batch_size),
      ranks_(ranks),
      sampler_(sampler_of_(ranks.rank)),
      steps_(steps_of_epoch(*sampler_, batch_size, ranks.world, last)),
      loader_(data::make_loader(dataset, in_memory_for(target, std::move(loader)))),
      upload_(target.device.is_cpu() ? nullptr : std::make_unique<Upload>(target.device)) {}

DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader::~DataLoader() = default;

// Of every rank.
std::vector<int64_t> DataLoader::sizes(int64_t step) const {
  std::vector<int64_t> sizes;
  for (int rank = 0; rank < ranks_.world; ++rank) {
    sizes.push_back(std::clamp<int64_t>(sampler_->size(rank) - step * batch_size_, 0, batch_size_));
  }
  if (batch_weights_.empty()) return sizes;
  return data::apportion(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), batch_weights_);
}

std::vector<int64_t> DataLoader::samples_per_rank() const {
  if (batch_weights_.empty()) return {};
  return data::apportion(batch_size_ * ranks_.world, batch_weights_);
}

// The batches of this rank, one per step of the epoch.
data::Batches DataLoader::batches(int64_t epoch) const {
  const bool is_weighted = !batch_weights_.empty();
  const int first = is_weighted ? 0 : ranks_.rank;
  const int end = is_weighted ? ranks_.world : first + std::max(1, ranks_.virtual_ranks);
  std::vector<data::Batches> all;
  for (int rank = first; rank < end; ++rank) {
    all.push_back(data::cut_batches(sampler_of_(rank)->indices(epoch), batch_size_, false));
    all.back().resize(static_cast<std::size_t>(steps_));
  }
  return is_weighted ? data::share_out(all, ranks_.rank, batch_weights_) : data::concatenated(all);
}

void DataLoader::start(int64_t epoch, int64_t from_step) {
  ahead_.reset();
  if (upload_) upload_->wait();
  step_ = std::min(from_step, steps_);
  data::Batches mine = batches(epoch);
  mine.erase(mine.begin(), mine.begin() + step_);
  loader_->start(std::move(mine), epoch);
}

bool DataLoader::next(TensorBatch& batch) {
  if (!upload_) return load(batch);
  if (!ahead_) ahead_ = fetch();
  if (!ahead_) return false;
  upload_->hand_out(*ahead_);
  batch = *std::exchange(ahead_, std::nullopt);
  if (loader_->ready()) ahead_ = fetch();
  return true;
}

// Loads the next batch and starts its copy to the GPU.
std::optional<TensorBatch> DataLoader::fetch() {
  upload_->wait();  // for the copy of the batch before: the Loader is about to reuse its memory
  TensorBatch batch;
  if (!load(batch)) return std::nullopt;
  return upload_->begin(batch);
}

bool DataLoader::load(TensorBatch& batch) {
  data::Batch loaded;
  if (!loader_->next(loaded)) return false;
  const std::vector<int64_t> all = sizes(step_++);
  const int64_t total = std::accumulate(all.begin(), all.end(), int64_t{0});
  batch.size = loaded.size;
  const auto weight = [&](int64_t samples) {
    return static_cast<double>(samples) * ranks_.world / static_cast<double>(total);
  };
  batch.weight = weight(loaded.size);
  batch.parts.clear();
  for (int part = 0; part < ranks_.virtual_ranks; ++part) {
    const int64_t samples = all[static_cast<std::size_t>(ranks_.rank + part)];
    batch.parts.push_back({samples, weight(samples)});
  }
  batch.input = view(loaded.inputs, loaded.size, dataset_.input());
  batch.target = view(loaded.targets, loaded.size, dataset_.target());
  return true;
}

}  // namespace ddprun::train
