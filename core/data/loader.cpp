#include "data/loader.hpp"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>
#include <utility>

#include "data/batch_buffer.hpp"
#include "data/datasets.hpp"
#include "ddprun/error.hpp"

namespace ddprun::data {
namespace {

std::size_t largest_batch(const Batches& batches) {
  std::size_t samples = 0;
  for (const auto& batch : batches) samples = std::max(samples, batch.size());
  return samples;
}

// No workers: next() fetches.
class InlineLoader : public Loader {
 public:
  InlineLoader(const Dataset& dataset, const MemorySource& memory) : dataset_(dataset), buffer_(memory) {}

  void start(Batches batches, int64_t epoch) override {
    batches_ = std::move(batches);
    epoch_ = epoch;
    next_ = 0;
    buffer_.reserve(dataset_, largest_batch(batches_));
  }

  bool next(Batch& batch) override {
    if (next_ == batches_.size()) return false;
    batch = buffer_.fill(dataset_, batches_[next_++], epoch_, never_);
    return true;
  }

  bool ready() override { return false; }

 private:
  const Dataset& dataset_;
  const std::atomic<bool> never_{false};
  Batches batches_;
  int64_t epoch_ = 0;
  std::size_t next_ = 0;
  BatchBuffer buffer_;
};

// Workers claim the batches of an epoch in order. Batch i uses slot i modulo the number of slots, and the caller
// receives the batches in order. One mutex guards everything but the memory of the slots: a worker owns a slot until it
// is ready, then the caller owns it until its next call.
//
// Waking a sleeping thread costs more than fetching a small batch. So only one worker is woken at a time, when half of
// the prefetched batches are used, and the caller only when the batch that it waits for is ready. If no worker has
// begun that batch yet, the caller fetches it itself.
class WorkerLoader : public Loader {
 public:
  WorkerLoader(const Dataset& dataset, const LoaderOptions& options)
      : dataset_(dataset),
        memory_(options.memory),
        least_ahead_(static_cast<std::size_t>(options.workers) * options.prefetch) {
    try {
      for (int i = 0; i < options.workers; ++i) workers_.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {
      shut_down();
      throw Error(ExitCode::failure,
                  "cannot start " + std::to_string(options.workers) + " data workers (data.workers): " + error.what());
    }
  }

  ~WorkerLoader() override { shut_down(); }

  void start(Batches batches, int64_t epoch) override {
    std::unique_lock lock(mutex_);
    stop_ = true;
    idle_.wait(lock, [this] { return busy_ == 0; });
    batches_.clear();
    claimed_ = taken_ = 0;
    make_room(largest_batch(batches), batches.size());
    for (auto& slot : slots_) {
      slot.ready = false;
      slot.error = nullptr;
    }
    batches_ = std::move(batches);
    epoch_ = epoch;
    stop_ = false;
    lock.unlock();
    space_.notify_all();
  }

  bool next(Batch& batch) override {
    std::unique_lock lock(mutex_);
    if (taken_ == batches_.size()) return false;
    Slot& slot = slots_[taken_ % slots_.size()];
    if (claimed_ == taken_) fetch_one(lock);
    caller_waits_ = !slot.ready;
    ready_.wait(lock, [&] { return slot.ready; });
    caller_waits_ = false;
    slot.ready = false;
    ++taken_;
    batch = slot.batch;
    const std::exception_ptr error = std::exchange(slot.error, nullptr);
    const bool wake = sleeping_ > 0 && claimed_ < batches_.size() && claimed_ - taken_ <= ahead() / 2;
    lock.unlock();
    if (wake) space_.notify_one();
    if (error) std::rethrow_exception(error);
    return true;
  }

  bool ready() override {
    const std::lock_guard lock(mutex_);
    if (taken_ == batches_.size()) return false;
    const Slot& slot = slots_[taken_ % slots_.size()];
    return slot.ready && slot.error == nullptr;
  }

 private:
  struct Slot {
    explicit Slot(const MemorySource& memory) : buffer(memory) {}
    BatchBuffer buffer;
    Batch batch;
    std::exception_ptr error;
    bool ready = false;
  };

  // The caller holds one slot.
  std::size_t ahead() const { return slots_.size() - 1; }

  void make_room(std::size_t samples, std::size_t batches) {
    constexpr std::size_t small_bytes = 256 * 1024;  // prefetch this many bytes in any case,
    constexpr std::size_t most_small = 64;           // but at most this many batches
    const std::size_t batch_bytes = samples * (dataset_.input().bytes() + dataset_.target().bytes());
    const std::size_t small = std::min(small_bytes / std::max<std::size_t>(1, batch_bytes), most_small);
    const std::size_t useful = std::clamp<std::size_t>(batches, 1, std::max(least_ahead_, small));
    while (slots_.size() < useful + 1) slots_.emplace_back(memory_);
    const std::size_t used = std::min(batches, slots_.size());
    for (std::size_t i = 0; i < used; ++i) slots_[i].buffer.reserve(dataset_, samples);
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      const auto may_claim = [this] { return !stop_ && claimed_ < std::min(batches_.size(), taken_ + ahead()); };
      if (!may_claim()) {
        ++sleeping_;
        space_.wait(lock, [&] { return ended_ || may_claim(); });
        --sleeping_;
      }
      if (ended_) return;
      fetch_one(lock);
    }
  }

  // Called with the lock held; returns with the lock held.
  void fetch_one(std::unique_lock<std::mutex>& lock) {
    const std::size_t number = claimed_++;
    Slot& slot = slots_[number % slots_.size()];
    ++busy_;
    lock.unlock();
    try {
      slot.batch = slot.buffer.fill(dataset_, batches_[number], epoch_, stop_);
    } catch (...) {
      slot.error = std::current_exception();
    }
    lock.lock();
    --busy_;
    slot.ready = true;
    if (busy_ == 0 && stop_) idle_.notify_one();
    if (caller_waits_ && number == taken_) {
      lock.unlock();  // otherwise the caller would wake up only to wait for the lock
      ready_.notify_one();
      lock.lock();
    }
  }

  void shut_down() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      stop_ = true;
    }
    space_.notify_all();
    for (auto& worker : workers_) worker.join();
  }

  const Dataset& dataset_;
  const MemorySource memory_;
  const std::size_t least_ahead_;

  std::mutex mutex_;
  std::condition_variable space_;  // for workers: there may be a batch to fetch
  std::condition_variable ready_;  // for the caller: the batch that it waits for is ready
  std::condition_variable idle_;   // for start(): no worker is busy
  Batches batches_;
  int64_t epoch_ = 0;
  std::vector<Slot> slots_;
  std::size_t claimed_ = 0;  // number of batches that workers have begun
  std::size_t taken_ = 0;    // number of batches that the caller has received
  std::size_t busy_ = 0;
  std::size_t sleeping_ = 0;
  bool caller_waits_ = false;
  bool ended_ = false;
  std::atomic<bool> stop_{false};  // a worker in the middle of a batch reads it without the lock
  std::vector<std::thread> workers_;
};

}  // namespace

std::unique_ptr<Loader> make_loader(const Dataset& dataset, LoaderOptions options) {
  if (options.workers < 0) {
    throw Error(ExitCode::usage, std::to_string(options.workers) + " data workers: expected 0 or more");
  }
  if (options.workers == 0) return std::make_unique<InlineLoader>(dataset, options.memory);
  if (options.prefetch < 1) {
    throw Error(ExitCode::usage, "prefetch of " + std::to_string(options.prefetch) + ": expected 1 or more");
  }
  return std::make_unique<WorkerLoader>(dataset, options);
}

void for_each_input(const Dataset& dataset, std::span<const int64_t> subset, int workers, const std::string& key,
                    const std::function<void(const float*)>& visit) {
  constexpr int64_t batch_size = 64;
  if (dataset.input().type != ElementType::float32) throw DatasetError(key, "needs inputs of type float32");
  const std::size_t elements = dataset.input().elements();
  const auto loader = make_loader(dataset, {workers, 2});
  std::vector<int64_t> indices(subset.begin(), subset.end());
  if (subset.empty()) {
    indices.resize(static_cast<std::size_t>(dataset.size()));
    std::iota(indices.begin(), indices.end(), int64_t{0});
  }
  loader->start(cut_batches(indices, batch_size, false), 0);
  auto index = indices.begin();
  for (Batch batch; loader->next(batch);) {
    const auto* input = static_cast<const float*>(batch.inputs);
    for (int64_t i = 0; i < batch.size; ++i, ++index, input += elements) {
      if (!std::all_of(input, input + elements, [](float value) { return std::isfinite(value); })) {
        throw DatasetError(key, "sample " + std::to_string(*index) + " holds a value that is NaN or infinite");
      }
      visit(input);
    }
  }
}

}  // namespace ddprun::data
