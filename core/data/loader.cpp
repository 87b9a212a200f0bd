#include "data/loader.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "ddprun/error.hpp"

namespace ddprun::data {
namespace {

std::size_t largest_batch(const Batches& batches) {
  std::size_t samples = 0;
  for (const auto& batch : batches) samples = std::max(samples, batch.size());
  return samples;
}

// The memory of a batch, allocated once and used for many batches. Used by one thread at a time.
class BatchBuffer {
 public:
  // Empty: ordinary memory.
  explicit BatchBuffer(MemorySource source) : source_(std::move(source)) {}

  // Allocates memory for this number of samples. It never shrinks.
  void reserve(const Dataset& dataset, std::size_t samples) {
    if (inputs_ && samples <= samples_) return;
    inputs_ = allocate(dataset.input(), samples);
    targets_ = allocate(dataset.target(), samples);
    samples_ = samples;
  }

  // Fetches the samples of `indices` piece by piece; reserve() must have been called for as many. Returns early with
  // the samples fetched so far once `stop` is true. Throws what the data set throws.
  Batch fill(const Dataset& dataset, std::span<const int64_t> indices, int64_t epoch, const std::atomic<bool>& stop) {
    constexpr std::size_t piece_bytes = 64 * 1024;
    const std::size_t input_bytes = dataset.input().bytes();
    const std::size_t target_bytes = dataset.target().bytes();
    const std::size_t piece = std::max<std::size_t>(1, piece_bytes / (input_bytes + target_bytes));
    for (std::size_t at = 0; at < indices.size() && !stop.load(std::memory_order_relaxed); at += piece) {
      const auto part = indices.subspan(at, std::min(piece, indices.size() - at));
      dataset.fetch(part, epoch, inputs_.get() + at * input_bytes, targets_.get() + at * target_bytes);
    }
    return {static_cast<int64_t>(indices.size()), inputs_.get(), targets_.get()};
  }

 private:
  using Memory = std::shared_ptr<std::byte>;

  Memory allocate(const Field& field, std::size_t samples) const {
    const std::size_t bytes = field.bytes();
    if (bytes > 0 && samples > std::numeric_limits<std::ptrdiff_t>::max() / bytes) {
      throw Error(ExitCode::failure, "a batch of " + std::to_string(samples) + " samples is larger than memory can be");
    }
    const std::size_t size = std::max<std::size_t>(1, samples * bytes);
    if (source_) return source_(size);
    constexpr std::align_val_t alignment{64};
    return {static_cast<std::byte*>(::operator new(size, alignment)),
            [](std::byte* memory) { ::operator delete(memory, alignment); }};
  }

  MemorySource source_;
  Memory inputs_;
  Memory targets_;
  std::size_t samples_ = 0;
};

// Workers claim the batches of an epoch in order. Batch i uses slot i modulo the number of slots, and the caller
// receives the batches in order. One mutex guards everything but the memory of the slots: a worker owns a slot until it
// is ready, then the caller owns it until its next call.
//
// Waking a sleeping thread costs more than fetching a small batch. So only one worker is woken at a time, when half of
// the prefetched batches are used, and the caller only when the batch that it waits for is ready. If no worker has
// begun that batch yet, or there are no workers, the caller fetches it itself.
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
    const std::size_t useful =
        workers_.empty() ? 0 : std::clamp<std::size_t>(batches, 1, std::max(least_ahead_, small));
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
  if (options.workers > 0 && options.prefetch < 1) {
    throw Error(ExitCode::usage, "prefetch of " + std::to_string(options.prefetch) + ": expected 1 or more");
  }
  return std::make_unique<WorkerLoader>(dataset, options);
}

}  // namespace ddprun::data
