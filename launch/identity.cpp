#include "launch/meeting.hpp"

#include <algorithm>
#include <sstream>

#include "ddprun/error.hpp"
#include "launch/net/secret.hpp"

namespace ddprun::launch {
namespace {

// `[optimizer] "lr = 0.1" and "lr = 0.2"`: the first different lines, with their table.
std::string first_difference(const std::string& a, const std::string& b) {
  std::istringstream left(a), right(b);
  std::string line_a, line_b, table;
  while (true) {
    const bool more_a = static_cast<bool>(std::getline(left, line_a));
    const bool more_b = static_cast<bool>(std::getline(right, line_b));
    if (!more_a && !more_b) return {};
    if (!more_a) line_a = "nothing";
    if (!more_b) line_b = "nothing";
    if (line_a != line_b) return table + "\"" + line_a + "\" and \"" + line_b + "\"";
    if (line_a.starts_with('[')) table = line_a + " ";
  }
}

}  // namespace

void compare_identities(Store& store, int rank, int size, const std::string& mine, std::chrono::milliseconds timeout,
                        const IdentityWords& words) {
  const auto digests = store.allgather("identity", rank, size, digest(mine), timeout);
  const auto found = std::find_if(digests.begin(), digests.end(), [&](const auto& each) { return each != digests[0]; });
  if (found == digests.end()) return;
  // Only now the texts travel: those of rank 0 and of the first rank that differs.
  const auto other = static_cast<int>(found - digests.begin());
  const auto key = [](int which) { return "identity of " + std::to_string(which); };
  if (rank == 0 || rank == other) store.set(key(rank), mine);
  const std::string first = store.get(key(0), timeout), second = store.get(key(other), timeout);
  // The process that has the store must not end before the others have the texts.
  store.allgather("identities differ", rank, size, "", timeout);
  throw Error(ExitCode::rendezvous, words.process + " 0 and " + words.process + " " + std::to_string(other) + " " +
                                        words.differ + ": " + first_difference(first, second) + "; " + words.advice);
}

}  // namespace ddprun::launch
