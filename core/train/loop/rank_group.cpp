#include "train/loop/rank_group.hpp"

#include <thread>

#include "ddprun/error.hpp"
#include "train/loop/heartbeat_barrier.hpp"

namespace ddprun::train {

// Gathers and adds in rank order, because a backend's allreduce need not support float64.
std::vector<double> RankGroup::sum(const std::vector<double>& values) const {
  const std::vector<double> all = gather_all(values);
  std::vector<double> sums(values.size());
  for (std::size_t i = 0; i < all.size(); ++i) sums[i % values.size()] += all[i];
  return sums;
}

std::vector<double> RankGroup::gather(double value) const {
  return gather_all({value});
}

std::vector<double> RankGroup::gather_all(const std::vector<double>& mine) const {
  if (backend_ == nullptr) return mine;
  std::vector<double> all(mine.size() * static_cast<std::size_t>(backend_->size()));
  backend_->allgather({.send = mine.data(), .recv = all.data(), .count = mine.size(), .dtype = DType::float64})
      .wait(timeout_);
  return all;
}

void RankGroup::barrier() const {
  if (backend_ != nullptr) backend_->barrier().wait(timeout_);
}

void RankGroup::heartbeat_barrier(const std::string& doing, const std::function<void()>& work) const {
  if (backend_ != nullptr) return run_with_heartbeat(*backend_, timeout_, doing, work);
  if (work) work();
}

void RankGroup::heartbeat_barrier_of_rank0(const std::string& doing, const std::function<void()>& work) const {
  heartbeat_barrier(doing, rank() == 0 ? work : nullptr);
}

void RankGroup::async_error() const {
  if (backend_ != nullptr) backend_->async_error();
}

void RankGroup::wait_for_replay(const c10::Event& end) const {
  if (backend_ == nullptr) return end.synchronize();
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  while (!is_over(end)) {
    async_error();
    if (std::chrono::steady_clock::now() >= deadline) {
      backend_->abort();
      throw Error(ExitCode::peer, "the CUDA graph of a step has not ended within " + std::to_string(timeout_.count()) +
                                      " ms: a rank that hangs or is gone, or a step that takes longer than "
                                      "comm.timeout");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  async_error();  // an aborted collective also completes, but without a result
}

// An event often returns the CUDA error of an aborted collective.
bool RankGroup::is_over(const c10::Event& event) const {
  try {
    return event.query();
  } catch (const c10::Error&) {
    async_error();
    throw;
  }
}

}  // namespace ddprun::train
