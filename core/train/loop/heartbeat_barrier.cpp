#include "train/loop/heartbeat_barrier.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "ddprun/error.hpp"

namespace ddprun::train {
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
        tell_of_delay();
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  bool is_awaited() {
    std::unique_lock lock(mutex_);
    return !wake_.wait_for(lock, std::min(kLongestPause, timeout_ / 4), [this] { return ended_; });
  }

  void tell_of_delay() {
    if (told_ || Clock::now() - begin_ < timeout_) return;
    told_ = true;
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
  bool told_ = false;
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

}  // namespace ddprun::train
