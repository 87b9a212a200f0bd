#include "train/device/worker_thread.hpp"

#include <utility>

namespace ddprun::train {

WorkerThread::~WorkerThread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_worker_.notify_one();
  thread_.join();
}

std::uint64_t WorkerThread::submit(std::function<void()> job) {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  const std::lock_guard lock(mutex_);
  if (failure_ == nullptr) jobs_.push_back(std::move(job));
  wake_worker_.notify_one();
  return ++submitted_;
}

void WorkerThread::wait(std::uint64_t job) {
  std::unique_lock lock(mutex_);
  wake_waiter_.wait(lock, [&] { return ended_ >= job || failure_ != nullptr; });
  const bool before_failure = ended_ > job;
  if (failure_ != nullptr && !before_failure) std::rethrow_exception(failure_);
}

void WorkerThread::drain() {
  if (std::this_thread::get_id() == runs_on_) return;
  if (submitted_ > 0) wait(submitted_);
}

void WorkerThread::run() {
  runs_on_ = std::this_thread::get_id();
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

}  // namespace ddprun::train
