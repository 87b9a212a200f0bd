#include "comm/group.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "ddprun/error.hpp"

namespace ddprun::comm {

// Gathers and adds, because a backend's allreduce need not support float64.
std::vector<double> Group::sum(const std::vector<double>& values, std::size_t rows) const {
  const std::vector<double> all = gather(values);
  std::vector<double> sums(values.size() / rows);
  for (std::size_t i = 0; i < all.size(); ++i) sums[i % sums.size()] += all[i];
  return sums;
}

std::vector<std::string> Group::gather(const std::string& mine) const {
  const auto sizes = gather(std::vector<int64_t>{static_cast<int64_t>(mine.size())});
  std::vector<uint8_t> padded(mine.begin(), mine.end());
  padded.resize(static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end())));
  const std::vector<uint8_t> all = gather(padded);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(rank * padded.size());
    texts.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(sizes[rank]));
  }
  return texts;
}

void Group::broadcast(void* data, std::size_t bytes, int root) const {
  backend_->broadcast({.recv = data, .count = bytes, .dtype = DType::uint8, .root = root}).wait(timeout_);
}

std::vector<char> Group::from(int root, std::vector<char> bytes) const {
  const std::vector<int64_t> sizes = gather(std::vector{static_cast<int64_t>(bytes.size())});
  bytes.resize(static_cast<std::size_t>(sizes[static_cast<std::size_t>(root)]));
  broadcast(bytes.data(), bytes.size(), root);
  return bytes;
}

void Group::allgather(const void* mine, std::size_t count, DType dtype, void* all) const {
  if (backend_ != nullptr) {
    backend_->allgather({.send = mine, .recv = all, .count = count, .dtype = dtype}).wait(timeout_);
  } else if (count > 0) {
    std::memcpy(all, mine, count * size_of(dtype));
  }
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// between two heartbeats; bounds the time until finished ranks notice that all have finished
constexpr milliseconds kLongestPause{250};
constexpr int kPatience = 10;  // number of timeouts that the others wait for a working rank

// One heartbeat: the ranks exchange whether they have finished. Returns the first that has not, or -1.
int exchange_heartbeat(const Group& group, bool done) {
  const std::vector<uint8_t> all = group.gather(std::vector<uint8_t>{done});
  const auto at_work = std::find(all.begin(), all.end(), 0);
  return at_work == all.end() ? -1 : static_cast<int>(at_work - all.begin());
}

// Exchanges heartbeats until all ranks have finished.
void wait_for_all(const Group& group, const std::string& doing) {
  const Clock::time_point begin = Clock::now();
  for (int rank; (rank = exchange_heartbeat(group, true)) >= 0;) {
    if (Clock::now() - begin < kPatience * group.timeout()) continue;
    throw Error(ExitCode::peer, "rank " + std::to_string(rank) + " has been " + doing + " for more than " +
                                    std::to_string(kPatience) +
                                    " times comm.timeout: its disk hangs, or comm.timeout is too short for it");
  }
}

// Exchanges heartbeats in this rank's name until stopped.
class Proxy {
 public:
  Proxy(const Group& group, std::string doing)
      : group_(group), doing_(std::move(doing)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

  // Ends the heartbeats. Throws what one of them threw.
  void end() {
    thread_ = {};  // stops and joins it, as the destructor does
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  void run(const std::stop_token& stop) {
    try {
      while (is_awaited(stop)) {
        exchange_heartbeat(group_, false);
        report_delay();
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  bool is_awaited(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    return !wake_.wait_for(lock, stop, std::min(kLongestPause, group_.timeout() / 4),
                           [&] { return stop.stop_requested(); });
  }

  void report_delay() {
    if (reported_ || Clock::now() - begin_ < group_.timeout()) return;
    reported_ = true;
    log::warning("rank " + std::to_string(group_.rank()) + " has been " + doing_ +
                 " for longer than comm.timeout; the others wait for it");
  }

  const Group& group_;
  const std::string doing_;
  const Clock::time_point begin_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable_any wake_;
  bool reported_ = false;
  std::exception_ptr failure_;
  std::jthread thread_;  // last member: it uses all of the above
};

}  // namespace

void with_heartbeat(const Group& group, const std::string& doing, const std::function<void()>& work) {
  if (!group.has_backend()) {
    if (work) work();
    return;
  }
  if (work) {
    Proxy proxy(group, doing);
    work();
    proxy.end();
  }
  wait_for_all(group, doing);
}

void with_heartbeat_on_rank0(const Group& group, const std::string& doing, const std::function<void()>& work) {
  with_heartbeat(group, doing, group.rank() == 0 ? work : nullptr);
}

}  // namespace ddprun::comm
