#include <optional>

#include "train/device/streams.hpp"
#include "train/reduce/bucket_transport.hpp"

namespace ddprun::train {
namespace {

class ThreadTransport final : public BucketTransport {
 public:
  ThreadTransport(std::vector<Bucket>& buckets, const BucketHook& hook, WorkerThread& thread)
      : buckets_(buckets), hook_(hook), thread_(thread) {}

  // No job of an unfinished step may outlive the buckets. The reducer has aborted the backend by now.
  ~ThreadTransport() override {
    try {
      thread_.drain();
    } catch (...) {
    }
  }

  void start(std::size_t bucket) override {
    if (bucket == 0) jobs_.clear();
    full_at_.resize(buckets_.size());
    full_at_[bucket] = std::chrono::steady_clock::now();
    if (is_on_gpu(bucket)) mark_ready(bucket);
    if (!is_on_gpu(bucket) && hook_.prepare) hook_.prepare(buckets_[bucket], bucket);
    if (!is_last(bucket)) submit(bucket);
  }

  void finish(std::size_t bucket) override {
    if (bucket == 0 && hook_.complete) submit(buckets_.size() - 1);
    if (is_last(bucket)) thread_.drain();  // of other reducers too
    bucket < jobs_.size() ? thread_.wait(jobs_[bucket]) : run(bucket);
    if (!is_on_gpu(bucket) && hook_.complete) hook_.complete(buckets_[bucket], bucket);
    if (is_last(bucket)) add_transfers();
  }

  void abandon() override { thread_.drain(); }

  std::vector<Transfer> transfers() const override { return transfers_; }
  double seconds() const override { return seconds_; }

 private:
  bool is_last(std::size_t bucket) const { return bucket + 1 == buckets_.size(); }
  void submit(std::size_t bucket) {
    jobs_.push_back(thread_.submit([this, bucket] { run(bucket); }));
  }
  bool is_on_gpu(std::size_t bucket) const { return buckets_[bucket].device().is_cuda(); }

  void add_transfers() {
    transfers_.clear();
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      transfers_.push_back(buckets_[i].transfer());
      if (!is_on_gpu(i)) transfers_.back().ready = full_at_[i];
      seconds_ += transfers_.back().seconds();
    }
  }

  void mark_ready(std::size_t bucket) {
    const torch::Device device = buckets_[bucket].device();
    if (!side_) side_.emplace(side_stream(device));
    while (ready_.size() < buckets_.size()) ready_.emplace_back(device.type());
    ready_[bucket].record(current_stream(device));
  }

  void run(std::size_t bucket) {
    if (!is_on_gpu(bucket)) return buckets_[bucket].reduce(hook_, bucket);
    ready_[bucket].synchronize();
    const c10::StreamGuard on_side(*side_);  // so that copies wait for no kernel of backward
    buckets_[bucket].run(hook_, bucket);
    side_->synchronize();  // a hook may have queued work after its last collective
  }

  std::vector<Bucket>& buckets_;
  const BucketHook& hook_;
  WorkerThread& thread_;
  std::vector<std::uint64_t> jobs_;                             // of this step, by bucket
  std::vector<std::chrono::steady_clock::time_point> full_at_;  // in this step, by bucket
  std::vector<Transfer> transfers_;
  double seconds_ = 0;
  std::optional<c10::Stream> side_;  // on a GPU
  std::vector<c10::Event> ready_;    // on a GPU, by bucket
};

}  // namespace

std::unique_ptr<BucketTransport> thread_transport(std::vector<Bucket>& buckets, const BucketHook& hook,
                                                  WorkerThread& thread) {
  return std::make_unique<ThreadTransport>(buckets, hook, thread);
}

}  // namespace ddprun::train
