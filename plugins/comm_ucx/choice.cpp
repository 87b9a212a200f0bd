#include "choice.hpp"

#include <algorithm>

namespace ddprun::ucx_backend {
namespace {

constexpr char kOfMessages[] = R"(ddprun-tuning 1
ucx 2 16384 tree
ucx 2 max ring
ucx max 32768 tree
ucx max max ring
)";

// One barrier of cache lines instead of messages: nothing else comes near it at any size.
constexpr char kOfSharedMemory[] = R"(ddprun-tuning 1
ucx max max shared
)";

}  // namespace

Way way_named(const std::string& name) {
  return name == "shared" ? Way::shared : name == "tree" ? Way::tree : Way::ring;
}

Choice::Choice(const Host& host, bool some_share_memory)
    : of_messages_(Tuning::parse(kOfMessages, "ucx")),
      tuning_(tuning_of(host, "ucx", kAlgorithms, some_share_memory ? kOfSharedMemory : kOfMessages)) {}

bool Choice::may_take(Way way) const {
  const auto& rows = tuning_.rows();
  return std::any_of(rows.begin(), rows.end(), [&](const TuningRow& row) { return way_named(row.algorithm) == way; });
}

}  // namespace ddprun::ucx_backend
