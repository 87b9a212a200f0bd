#include <chrono>
#include <deque>
#include <utility>

#include "train/device/streams.hpp"
#include "train/reduce/bucket_transport.hpp"

namespace ddprun::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kUnread = 3;  // steps whose times are not read yet: more than a host runs ahead of its GPU

struct Timed {
  explicit Timed(torch::Device device) : ready(device.type()), begin(timing_event(device)), end(timing_event(device)) {}

  std::size_t bytes = 0;
  c10::Event ready, begin, end;
};
using TimedStep = std::vector<Timed>;

// Waits until the allreduce has ended.
double seconds_of(const TimedStep& step) {
  double seconds = 0;
  for (const Timed& timed : step) {
    if (!timed.end.query()) timed.end.synchronize();
    seconds += timed.begin.elapsedTime(timed.end) / 1000;
  }
  return seconds;
}

Clock::duration from_milliseconds(double count) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(count));
}

class StreamTransport final : public BucketTransport {
 public:
  StreamTransport(std::vector<Bucket>& buckets, const BucketHook& hook)
      : buckets_(buckets), hook_(hook), device_(buckets.at(0).device()), side_(side_stream(device_, true)) {}

  void start(std::size_t bucket) override {
    if (bucket == 0) begin_step();
    Timed& timed = steps_.back()[bucket];
    timed.ready.record(current_stream(device_));
    timed.ready.block(side_);
    const c10::StreamGuard on_side(side_);
    timed.begin.record(side_);
    buckets_[bucket].run(hook_, bucket);
    timed.end.record(side_);
    timed.bytes = buckets_[bucket].transfer().bytes;
  }

  void finish(std::size_t bucket) override { steps_.back()[bucket].end.block(current_stream(device_)); }

  void abandon() override {
    c10::Event end(device_.type());
    end.record(side_);
    end.block(current_stream(device_));
  }

  std::vector<Transfer> transfers() const override {
    if (steps_.empty()) return {};
    c10::Event now = timing_event(device_);
    now.record(side_);
    now.synchronize();
    const Clock::time_point host_now = Clock::now();
    const auto time_of = [&](const c10::Event& event) { return host_now - from_milliseconds(event.elapsedTime(now)); };
    std::vector<Transfer> transfers;
    for (const Timed& timed : steps_.back())
      transfers.push_back({.bytes = timed.bytes, .begin = time_of(timed.begin), .end = time_of(timed.end)});
    return transfers;
  }

  double seconds() const override {
    double seconds = seconds_;
    for (const TimedStep& step : steps_) seconds += seconds_of(step);
    return seconds;
  }

 private:
  void begin_step() {
    TimedStep step;
    if (steps_.size() == kUnread) {
      step = std::move(steps_.front());
      steps_.pop_front();
      seconds_ += seconds_of(step);
    }
    while (step.size() > buckets_.size()) step.pop_back();
    while (step.size() < buckets_.size()) step.emplace_back(device_);
    steps_.push_back(std::move(step));
  }

  std::vector<Bucket>& buckets_;
  const BucketHook& hook_;
  const torch::Device device_;
  const c10::Stream side_;
  std::deque<TimedStep> steps_;  // newest last
  double seconds_ = 0;           // of the steps that are no longer in steps_
};

}  // namespace

std::unique_ptr<BucketTransport> stream_transport(std::vector<Bucket>& buckets, const BucketHook& hook) {
  return std::make_unique<StreamTransport>(buckets, hook);
}

}  // namespace ddprun::train
