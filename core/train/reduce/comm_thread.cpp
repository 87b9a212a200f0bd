#include "train/reduce/comm_thread.hpp"

#include <utility>

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

}  // namespace ddprun::train
