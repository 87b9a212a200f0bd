#include "choice.hpp"

#include <algorithm>

namespace ddprun::ucx_backend {
namespace {

// Measured on 2026-11-21 with `ddprun bench --tune`, float32 sums over TCP on the loopback of a machine with 2 cores:
// with 4 ranks the ring lost up to 64 KiB and won from 256 KiB, with 2 they were even in between. Between machines the
// tree's more bytes cost more, so the limit is the lower one.
constexpr char kOfMessages[] = R"(ddprun-tuning 1
ucx max 65536 tree
ucx max max ring
)";

// One barrier of cache lines instead of messages: nothing else comes near it at any size.
constexpr char kOfSharedMemory[] = R"(ddprun-tuning 1
ucx max max shared
)";

}  // namespace

Algorithm algorithm_named(const std::string& name) {
  return name == "shared" ? Algorithm::shared : name == "tree" ? Algorithm::tree : Algorithm::ring;
}

Choice::Choice(const Host& host, bool some_share_memory)
    : of_messages_(Tuning::parse(kOfMessages, "ucx")), on_gpus_(of_messages_), tuning_(of_messages_) {
  const char* const stock = some_share_memory ? kOfSharedMemory : kOfMessages;
  if (host.device() < 0) {
    tuning_ = tuning_of(host, "ucx", kAlgorithms, stock);
  } else {
    on_gpus_ = tuning_of(host, "ucx", std::span(kAlgorithms).first(kOfGpus), kOfMessages);
    tuning_ = Tuning::parse(stock, "ucx");
  }
}

bool Choice::may_take(Algorithm wanted) const {
  const auto& rows = tuning_.rows();
  return std::any_of(rows.begin(), rows.end(), [&](const TuningRow& row) { return algorithm_named(row.algorithm) == wanted; });
}

}  // namespace ddprun::ucx_backend
