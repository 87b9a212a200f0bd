#include "choice.hpp"

namespace ddprun::ucx_backend {
namespace {

// Measured on 2026-11-21 with `ddprun bench --tune`: float32 sums over TCP on the loopback of a machine with 2 cores.
// With 4 ranks the tree was faster up to 64 KiB, the ring from 256 KiB; with 2 ranks they were equal in between.
// Between machines the tree's extra bytes cost more, so the limit is the lower one.
constexpr uint64_t kFewBytes = 65536;
constexpr char kOverUcx[] = R"(ddprun-tuning 1
ucx max 65536 tree
ucx max max ring
)";

// Fewer ranks send between hosts, and within a host shared memory costs less than UCX.
constexpr char kHierarchical[] = R"(ddprun-tuning 1
ucx max max hierarchical
)";

Tuning tuned(const Host& host, bool is_hierarchical) {
  if (host.device() < 0) return tuning_of(host, "ucx", kAlgorithms, is_hierarchical ? kHierarchical : kOverUcx);
  return tuning_of(host, "ucx", std::span(kAlgorithms).first(kOfGpus), kOverUcx);
}

}  // namespace

Choice::Choice(const Host& host, int hosts, bool is_hierarchical)
    : tuned_memory_(host.device() < 0 ? Memory::host : Memory::cuda),
      ranks_(host.size()),
      hosts_(hosts),
      tuned_(tuned(host, is_hierarchical)),
      over_ucx_(Tuning::parse(kOverUcx, "ucx", kAlgorithms)) {}

Algorithm Choice::algorithm(const Collective& call) const {
  const uint64_t bytes = call.count * size_of(call.dtype);
  if (call.canonical_order) return bytes <= kFewBytes ? Algorithm::tree : Algorithm::halving_doubling;
  const Tuning& tuning = call.memory == tuned_memory_ ? tuned_ : over_ucx_;
  return static_cast<Algorithm>(tuning.index(ranks_, bytes));
}

Algorithm Choice::between_hosts(uint64_t bytes) const {
  return static_cast<Algorithm>(over_ucx_.index(hosts_, bytes));
}

}  // namespace ddprun::ucx_backend
