#include "choice.hpp"

namespace ddprun::gloo_backend {
namespace {

// Measured on 2026-11-25 with `ddprun bench`: float32 sums in place, over loopback and between network namespaces of a
// machine with 2 cores, with and without a limit to their links. Doubling was the fastest for small vectors: it sends
// log2(n) messages one after the other, the ring 2 (n-1). Between two ranks it also sends as few bytes as the ring. For
// larger vectors, halving and doubling sends as few bytes as the ring in fewer messages, but only if the world size is
// a power of two; otherwise some ranks also send whole vectors, which takes twice as long on a slow link. The rows of
// more than 8 ranks are not measured: there, the number of messages counts up to 1 MiB, and the number of bytes beyond.
constexpr char kStock[] = R"(ddprun-tuning 1
gloo 2 524288 doubling
gloo 2 max ring
gloo 3 65536 doubling
gloo 3 max ring
gloo 4 65536 doubling
gloo 4 max halving_doubling
gloo 7 65536 doubling
gloo 7 max ring
gloo 8 65536 doubling
gloo 8 max halving_doubling
gloo max 65536 doubling
gloo max 1048576 halving_doubling
gloo max max ring
)";

// Fewer ranks send between hosts, and within a host shared memory costs less than a socket.
constexpr char kHierarchical[] = R"(ddprun-tuning 1
gloo max max hierarchical
)";

}  // namespace

Tuning tuning_for(const Host& host, bool is_hierarchical) {
  return tuning_of(host, "gloo", kAlgorithms, is_hierarchical ? kHierarchical : kStock);
}

// The limit is that of the table for 4 and 8 ranks.
Algorithm in_canonical_order(uint64_t bytes) {
  return bytes <= 65536 ? Algorithm::doubling : Algorithm::halving_doubling;
}

Algorithm between_hosts(int hosts, uint64_t bytes) {
  static const Tuning stock = Tuning::parse(kStock, "gloo", kAlgorithms);
  return static_cast<Algorithm>(stock.index(hosts, bytes));
}

}  // namespace ddprun::gloo_backend
