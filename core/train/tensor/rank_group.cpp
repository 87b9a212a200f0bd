#include "train/tensor/rank_group.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "ddprun/error.hpp"
#include "train/tensor/tensor_buffer.hpp"

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

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// between two heartbeats; bounds the time until finished ranks notice that all have finished
constexpr milliseconds kLongestPause{250};
constexpr int kPatience = 10;  // number of timeouts that the others wait for a working rank

// One heartbeat: the ranks exchange whether they have finished. Returns the first that has not, or -1.
int meet(CommBackend& backend, milliseconds timeout, bool done) {
  const auto mine = static_cast<uint8_t>(done);
  std::vector<uint8_t> all(static_cast<std::size_t>(backend.size()));
  backend.allgather({.send = &mine, .recv = all.data(), .count = 1, .dtype = DType::uint8}).wait(timeout);
  const auto at_work = std::find(all.begin(), all.end(), 0);
  return at_work == all.end() ? -1 : static_cast<int>(at_work - all.begin());
}

// Exchanges heartbeats until all ranks have finished.
void wait_for_all(CommBackend& backend, milliseconds timeout, const std::string& doing) {
  const Clock::time_point begin = Clock::now();
  for (int rank; (rank = meet(backend, timeout, true)) >= 0;) {
    if (Clock::now() - begin < kPatience * timeout) continue;
    throw Error(ExitCode::peer, "rank " + std::to_string(rank) + " has been " + doing + " for more than " +
                                    std::to_string(kPatience) +
                                    " times comm.timeout: its disk hangs, or comm.timeout is too short for it");
  }
}

// Exchanges heartbeats in this rank's name until stopped.
class Proxy {
 public:
  Proxy(CommBackend& backend, milliseconds timeout, std::string doing)
      : backend_(backend), timeout_(timeout), doing_(std::move(doing)), thread_([this] { run(); }) {}
  ~Proxy() { join(); }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  // Ends the heartbeats. Throws what one of them threw.
  void end() {
    join();
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  void join() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  void run() {
    try {
      while (is_awaited()) {
        meet(backend_, timeout_, false);
        report_delay();
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  bool is_awaited() {
    std::unique_lock lock(mutex_);
    return !wake_.wait_for(lock, std::min(kLongestPause, timeout_ / 4), [this] { return ended_; });
  }

  void report_delay() {
    if (reported_ || Clock::now() - begin_ < timeout_) return;
    reported_ = true;
    log::warning("rank " + std::to_string(backend_.rank()) + " has been " + doing_ +
                 " for longer than comm.timeout; the others wait for it");
  }

  CommBackend& backend_;
  const milliseconds timeout_;
  const std::string doing_;
  const Clock::time_point begin_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  bool reported_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last member: it uses all of the above
};

}  // namespace

void run_with_heartbeat(CommBackend& backend, milliseconds timeout, const std::string& doing,
                        const std::function<void()>& work) {
  if (work) {
    Proxy proxy(backend, timeout, doing);
    work();
    proxy.end();
  }
  wait_for_all(backend, timeout, doing);
}

void broadcast_tensors(CommBackend& backend, const std::vector<NamedTensor>& tensors, std::chrono::milliseconds timeout,
                       int root) {
  const torch::NoGradGuard no_grad;
  std::map<torch::ScalarType, std::vector<torch::Tensor>> by_type;
  for (const NamedTensor& item : tensors) {
    // Not detach(): that shares the counter with which autograd refuses a second backward through changed buffers.
    by_type[item.tensor.scalar_type()].push_back(item.tensor.variable_data());
  }
  for (auto& [type, group] : by_type) {
    std::vector<torch::Tensor> parts;
    for (const torch::Tensor& tensor : group) parts.push_back(tensor.reshape({-1}));
    const torch::Tensor flat = torch::cat(parts);
    Collective call = in_place(flat.view(torch::kUInt8));  // bool and complex have no DType
    call.root = root;
    backend.broadcast(call).wait(timeout);
    std::vector<torch::Tensor> views;
    int64_t offset = 0;
    for (const torch::Tensor& tensor : group) {
      views.push_back(flat.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
      offset += tensor.numel();
    }
    at::_foreach_copy_(group, views);  // few kernels for all tensors on a GPU
  }
}

void compare_tensors(CommBackend& backend, const std::vector<NamedTensor>& tensors, int64_t step,
                     std::chrono::milliseconds timeout) {
  std::vector<int64_t> mine;
  for (const NamedTensor& item : tensors) mine.push_back(static_cast<int64_t>(hash_of(item.tensor)));
  std::vector<int64_t> all(mine.size() * static_cast<std::size_t>(backend.size()));
  backend.allgather({.send = mine.data(), .recv = all.data(), .count = mine.size(), .dtype = DType::int64})
      .wait(timeout);
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    for (int rank = 1; rank < backend.size(); ++rank) {
      if (all[static_cast<std::size_t>(rank) * mine.size() + index] == all[index]) continue;
      throw Error(ExitCode::peer, "step " + std::to_string(step) + ": parameter \"" + tensors[index].name +
                                      "\" differs between rank 0 and rank " + std::to_string(rank) +
                                      ": the replicas have drifted apart");
    }
  }
}

}  // namespace ddprun::train
