#include "elastic/membership.hpp"

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <numeric>
#include <sstream>
#include <utility>

#include "ddprun/error.hpp"
#include "launch/rendezvous.hpp"

namespace ddprun::elastic {
namespace {

using std::chrono::milliseconds;

class StoreOfMembers final : public Store {
 public:
  StoreOfMembers(Store& job, int changes)
      : job_(job),
        store_(launch::prefixed_store(job, std::to_string(changes) + "/")),
        next_change_(launch::members_key(changes + 1)) {}

  void set(const std::string& key, std::string_view value) override { store_->set(key, value); }

  std::optional<std::string> get(const std::string& key, milliseconds timeout) override {
    constexpr milliseconds kBetweenChecks{10};
    const auto end = std::chrono::steady_clock::now() + timeout;
    while (true) {
      const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
      if (auto value = store_->get(key, std::min(left, kBetweenChecks))) return value;
      if (job_.get(next_change_, milliseconds(0))) {
        throw Error(ExitCode::peer, "the ranks have changed while this one waited for \"" + key + "\"");
      }
      if (left <= kBetweenChecks) return std::nullopt;
    }
  }

 private:
  Store& job_;
  const std::unique_ptr<Store> store_;
  const std::string next_change_;
};

}  // namespace

Membership::Membership(Store& job, int rank, int size)
    : job_(job), number_(rank), members_(static_cast<std::size_t>(size)), rank_(rank) {
  std::iota(members_.begin(), members_.end(), 0);
}

std::unique_ptr<Store> Membership::store() const {
  return std::make_unique<StoreOfMembers>(job_, changes_);
}

bool Membership::has_changed(milliseconds limit) const {
  return job_.get(launch::members_key(changes_ + 1), limit).has_value();
}

bool Membership::renew(milliseconds limit) {
  if (!has_changed(limit)) return false;
  while (const auto members = job_.get(launch::members_key(changes_ + 1), milliseconds(0))) {
    std::istringstream numbers(*members);
    members_.assign(std::istream_iterator<int>(numbers), {});
    ++changes_;
  }
  const auto found = std::ranges::find(members_, number_);
  rank_ = found == members_.end() ? -1 : static_cast<int>(found - members_.begin());
  return true;
}

std::jthread Membership::watch(std::function<void()> end) const {
  return std::jthread([&job = job_, next = changes_ + 1, end = std::move(end)](const std::stop_token& stop) mutable {
    constexpr milliseconds kBetweenChecks{20};
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any stopped;
    const auto is_stopped = [&] { return stop.stop_requested(); };
    for (; !is_stopped(); stopped.wait_for(lock, stop, kBetweenChecks, is_stopped)) {
      try {
        while (const auto members = job.get(launch::members_key(next), milliseconds(0))) {
          if (members->ends_with(launch::kDied)) return end();
          ++next;
        }
      } catch (const std::exception&) {  // the training thread gets the error of a job that has failed
      }
    }
  });
}

}  // namespace ddprun::elastic
