#include "train/reduce/thread_transport.hpp"

#include <utility>

#include "train/device/streams.hpp"
#include "train/reduce/bucket_transport.hpp"

namespace ddprun::train {

CommThread::CommThread() : thread_([this] { run(); }) {}

CommThread::~CommThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_worker_.notify_one();
  thread_.join();
}

void CommThread::submit(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_ != nullptr) return;
    jobs_.push_back(std::move(job));
  }
  wake_worker_.notify_one();
}

void CommThread::wait(std::uint64_t count) {
  std::unique_lock lock(mutex_);
  wake_waiter_.wait(lock, [&] { return ended_ >= count || failure_ != nullptr; });
  const bool before_failure = failure_ != nullptr && ended_ > count;
  if (failure_ != nullptr && !before_failure) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void CommThread::reset() {
  const std::lock_guard lock(mutex_);
  ended_ = 0;
}

void CommThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_worker_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      job();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    ++ended_;
    if (failure != nullptr) {
      failure_ = failure;
      jobs_.clear();
    }
    wake_waiter_.notify_one();
  }
}

namespace {

class ThreadTransport final : public BucketTransport {
 public:
  ThreadTransport(CommBackend& backend, std::vector<Bucket>& buckets, std::chrono::milliseconds timeout)
      : backend_(backend), buckets_(buckets), timeout_(timeout) {}

  void start(std::size_t bucket) override {
    if (bucket == 0 && thread_ != nullptr) thread_->reset();
    if (buckets_[bucket].device().is_cuda()) mark_ready(bucket);
    if (is_last(bucket)) return;
    if (thread_ == nullptr) thread_ = std::make_unique<CommThread>();
    thread_->submit([this, bucket] { run(bucket); });
  }

  void finish(std::size_t bucket) override {
    if (!is_last(bucket)) return thread_->wait(bucket + 1);
    run(bucket);
    transfers_.clear();
    for (const Bucket& done : buckets_) {
      transfers_.push_back(done.transfer());
      seconds_ += done.transfer().seconds();
    }
  }

  std::vector<Transfer> transfers() const override { return transfers_; }
  double seconds() const override { return seconds_; }

 private:
  bool is_last(std::size_t bucket) const { return bucket + 1 == buckets_.size(); }

  void mark_ready(std::size_t bucket) {
    const torch::Device device = buckets_[bucket].device();
    if (bucket == 0) side_.emplace(side_stream(device));
    while (ready_.size() < buckets_.size()) ready_.push_back(ordering_event(device));
    ready_[bucket].record(current_stream(device));
  }

  void run(std::size_t bucket) {
    if (!buckets_[bucket].device().is_cuda()) return buckets_[bucket].allreduce(backend_, timeout_);
    ready_[bucket].synchronize();
    const c10::StreamGuard on_side(*side_);  // so that copies wait for no kernel of backward
    buckets_[bucket].allreduce(backend_, timeout_);
  }

  CommBackend& backend_;
  std::vector<Bucket>& buckets_;
  const std::chrono::milliseconds timeout_;
  std::vector<Transfer> transfers_;
  double seconds_ = 0;
  std::optional<c10::Stream> side_;     // on a GPU
  std::vector<c10::Event> ready_;       // on a GPU, by bucket
  std::unique_ptr<CommThread> thread_;  // last member: its jobs use the others
};

}  // namespace

std::unique_ptr<BucketTransport> thread_transport(CommBackend& backend, std::vector<Bucket>& buckets,
                                                  std::chrono::milliseconds timeout) {
  return std::make_unique<ThreadTransport>(backend, buckets, timeout);
}

}  // namespace ddprun::train
