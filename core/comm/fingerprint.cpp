#include "comm/fingerprint.hpp"

#include <vector>

#include "base/enumerated.hpp"

namespace ddprun::comm {
namespace {

// "rank 1", "ranks 0 and 2", "ranks 0, 2 and 3".
std::string name_ranks(const std::vector<std::size_t>& ranks) {
  std::vector<std::string> numbers;
  for (const std::size_t rank : ranks) numbers.push_back(std::to_string(rank));
  return (ranks.size() == 1 ? "rank " : "ranks ") + enumerated(numbers);
}

}  // namespace

Fingerprint fingerprint(const Call& call) {
  return {.sequence = call.number,
          .count = call.what.count,
          .bucket = call.what.bucket,
          .root = call.what.root,
          .kind = static_cast<uint8_t>(call.kind),
          .dtype = static_cast<uint8_t>(call.what.dtype),
          .op = static_cast<uint8_t>(call.what.op),
          .memory = static_cast<uint8_t>(call.what.memory)};
}

std::string describe(const Fingerprint& print) {
  return describe(Call{.kind = static_cast<Kind>(print.kind),
                       .number = print.sequence,
                       .what = {.count = print.count,
                                .dtype = static_cast<DType>(print.dtype),
                                .op = static_cast<Op>(print.op),
                                .root = print.root,
                                .memory = static_cast<Memory>(print.memory),
                                .bucket = print.bucket}});
}

std::string describe_disagreement(std::span<const Fingerprint> prints) {
  std::string text;
  for (std::size_t first = 0; first < prints.size(); ++first) {
    const auto same = [&](std::size_t rank) { return prints[rank] == prints[first]; };
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 0; rank < prints.size(); ++rank) {
      if (same(rank)) ranks.push_back(rank);
    }
    if (ranks.front() != first) continue;  // reported with an earlier rank
    text += (text.empty() ? "" : ", ") + name_ranks(ranks) + " called " + describe(prints[first]);
  }
  return text;
}

}  // namespace ddprun::comm
