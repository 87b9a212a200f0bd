#include "comm/fingerprint.hpp"

#include <vector>

#include "base/text.hpp"

namespace ddprun::comm {

std::string describe_disagreement(std::span<const CallShape> shapes) {
  std::string text;
  for (std::size_t first = 0; first < shapes.size(); ++first) {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < shapes.size(); ++rank) {
      if (shapes[rank] == shapes[first]) ranks.push_back(static_cast<int>(rank));
    }
    if (ranks.front() != static_cast<int>(first)) continue;  // reported with an earlier rank
    text += (text.empty() ? "" : ", ") + rank_list(ranks) + " called " + describe(shapes[first]);
  }
  return text;
}

namespace {

class BackendExchange final : public FingerprintExchange {
 public:
  explicit BackendExchange(CommBackend& backend)
      : backend_(backend), shapes_(static_cast<std::size_t>(backend.size())) {}

  std::span<const CallShape> exchange(const CallShape& mine, std::chrono::milliseconds deadline) override {
    backend_.allgather({.send = &mine, .recv = shapes_.data(), .count = sizeof mine, .dtype = DType::uint8})
        .wait(deadline);
    return shapes_;
  }

  void abort() noexcept override {}  // the backend's own abort ends the allgather

 private:
  CommBackend& backend_;
  std::vector<CallShape> shapes_;
};

}  // namespace

std::unique_ptr<FingerprintExchange> exchange_over(CommBackend& backend) {
  return std::make_unique<BackendExchange>(backend);
}

}  // namespace ddprun::comm
