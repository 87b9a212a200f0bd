#include "choice.hpp"

namespace ddprun::gloo_backend {
namespace {

// Measured on 2026-11-25 with `ddprun bench`: float32 sums in place over loopback, 256 B to 8 MiB, world sizes 2, 3 and
// 4, ranks as processes of one busy machine with 2 cores. Doubling was the fastest for small vectors: it sends log2(n)
// messages one after the other, the tree up to twice as many. For larger vectors, halving and doubling sends as few
// bytes as the ring in fewer messages, but some ranks also send whole vectors if the world size is no power of two.
constexpr char kStock[] = R"(ddprun-tuning 1
gloo 2 131072 doubling
gloo 2 max halving_doubling
gloo 3 131072 doubling
gloo 3 4194304 halving_doubling
gloo 3 max ring
gloo 4 65536 doubling
gloo 4 max halving_doubling
gloo max 65536 doubling
gloo max 4194304 halving_doubling
gloo max max ring
)";

}  // namespace

std::optional<Algorithm> algorithm_named(const std::string& name) {
  for (std::size_t i = 0; i < std::size(kAlgorithms); ++i) {
    if (name == kAlgorithms[i].name) return static_cast<Algorithm>(i);
  }
  return std::nullopt;
}

Tuning tuning_for(const Host& host) {
  return tuning_of(host, "gloo", kAlgorithms, kStock);
}

}  // namespace ddprun::gloo_backend
