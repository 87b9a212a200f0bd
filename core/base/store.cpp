#include "base/store.hpp"

#include <algorithm>
#include <utility>

#include "ddprun/error.hpp"

namespace ddprun {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

void throw_missing_ranks(const std::string& name, int size, std::chrono::milliseconds waited,
                         const std::string& missing) {
  throw Error(ExitCode::rendezvous, "rendezvous \"" + name + "\": waited " + std::to_string(waited.count()) +
                                        " ms; of " + std::to_string(size) + " ranks these did not come: " + missing);
}

std::string Store::require(const std::string& key, std::chrono::milliseconds timeout) {
  auto value = get(key, timeout);
  if (value) return std::move(*value);
  throw Error(ExitCode::rendezvous, "store: waited " + std::to_string(std::max<int64_t>(timeout.count(), 0)) +
                                        " ms for the key \"" + key + "\"; nobody set it");
}

std::vector<std::string> Store::allgather(const std::string& name, int rank, int size, std::string_view value,
                                          std::chrono::milliseconds timeout) {
  const auto begin = Clock::now();
  const auto deadline = begin + timeout;
  set(rank_key(name, rank), value);
  std::vector<std::string> values;
  std::string missing;
  for (int peer = 0; peer < size; ++peer) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    const auto text = get(rank_key(name, peer), missing.empty() ? left : std::chrono::milliseconds(0));
    if (!text) missing += (missing.empty() ? "" : ", ") + std::to_string(peer);
    values.push_back(text.value_or(""));
  }
  if (!missing.empty()) {
    throw_missing_ranks(name, size, std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin),
                        missing);
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
