#include "comm/fingerprint.hpp"

#include <vector>

#include "base/text.hpp"

namespace ddprun::comm {

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
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < prints.size(); ++rank) {
      if (prints[rank] == prints[first]) ranks.push_back(static_cast<int>(rank));
    }
    if (ranks.front() != static_cast<int>(first)) continue;  // reported with an earlier rank
    text += (text.empty() ? "" : ", ") + rank_list(ranks) + " called " + describe(prints[first]);
  }
  return text;
}

namespace {

class BackendExchange final : public FingerprintExchange {
 public:
  explicit BackendExchange(CommBackend& backend)
      : backend_(backend), prints_(static_cast<std::size_t>(backend.size())) {}

  std::span<const Fingerprint> exchange(const Fingerprint& mine, std::chrono::milliseconds deadline) override {
    backend_.allgather({.send = &mine, .recv = prints_.data(), .count = sizeof mine, .dtype = DType::uint8})
        .wait(deadline);
    return prints_;
  }

  void abort() noexcept override {}  // the backend's own abort ends the allgather

 private:
  CommBackend& backend_;
  std::vector<Fingerprint> prints_;
};

}  // namespace

std::unique_ptr<FingerprintExchange> exchange_over(CommBackend& backend) {
  return std::make_unique<BackendExchange>(backend);
}

}  // namespace ddprun::comm
