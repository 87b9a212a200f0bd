#include "base/store.hpp"

#include <algorithm>
#include <utility>

#include "ddprun/error.hpp"

namespace ddprun {
namespace {

using Clock = std::chrono::steady_clock;

std::string key_of(const std::string& name, int rank) {
  return name + "/" + std::to_string(rank);
}

std::chrono::milliseconds left_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return std::max(left, std::chrono::milliseconds::zero());
}

bool is_missing(Store& store, const std::string& key) try {
  store.get(key, std::chrono::milliseconds::zero());
  return false;
} catch (const Error& error) {
  if (error.code() != ExitCode::rendezvous) throw;
  return true;
}

[[noreturn]] void throw_missing(Store& store, const std::string& name, int first, int size,
                                std::chrono::milliseconds waited, const std::string& reason) {
  std::string missing;
  for (int rank = first; rank < size; ++rank) {
    if (is_missing(store, key_of(name, rank))) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  // All ranks arrived meanwhile, but too late: report the first error.
  if (missing.empty()) throw Error(ExitCode::rendezvous, reason);
  throw_missing_ranks(name, size, waited, missing);
}

}  // namespace

void throw_missing_ranks(const std::string& name, int size, std::chrono::milliseconds waited,
                         const std::string& missing) {
  throw Error(ExitCode::rendezvous, "rendezvous \"" + name + "\": waited " + std::to_string(waited.count()) +
                                        " ms; of " + std::to_string(size) + " ranks these did not come: " + missing);
}

std::vector<std::string> Store::allgather(const std::string& name, int rank, int size, std::string_view value,
                                          std::chrono::milliseconds timeout) {
  const auto begin = Clock::now();
  const auto deadline = begin + timeout;
  set(key_of(name, rank), value);
  std::vector<std::string> values(static_cast<std::size_t>(size));
  for (int peer = 0; peer < size; ++peer) {
    try {
      values[static_cast<std::size_t>(peer)] = get(key_of(name, peer), left_until(deadline));
    } catch (const Error& error) {
      if (error.code() != ExitCode::rendezvous) throw;
      const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
      throw_missing(*this, name, peer, size, waited, error.what());
    }
  }
  return values;
}

std::function<std::vector<std::string>(std::string_view)> Store::numbered_allgather(std::string name, int rank,
                                                                                    int size,
                                                                                    std::chrono::milliseconds timeout) {
  return [this, name = std::move(name), rank, size, timeout, round = 0](std::string_view value) mutable {
    return allgather(name + "-" + std::to_string(round++), rank, size, value, timeout);
  };
}

}  // namespace ddprun
