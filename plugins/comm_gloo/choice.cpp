#include "choice.hpp"

namespace ddprun::gloo_backend {
namespace {

// Measured on 2026-11-21 with `ddprun bench`: float32 sums in place, ranks as processes of one busy machine with 2
// cores, over loopback, for 16 KiB to 32 MiB and worlds of 2, 3 and 4. There the tree won while latency counts: it
// sends 2 log2(n) messages, the ring at least 4 (n - 1) one after the other. Above, halving and doubling sends as few
// bytes as the ring in fewer messages, but some ranks whole vectors besides where the world is no power of two. The
// tree ends early for larger worlds, because between machines its root has to send and receive log2(n) whole vectors.
constexpr char kStock[] = R"(ddprun-tuning 1
gloo 2 262144 tree
gloo 2 max halving_doubling
gloo 3 262144 tree
gloo 3 4194304 halving_doubling
gloo 3 max ring
gloo 4 524288 tree
gloo 4 max halving_doubling
gloo max 524288 tree
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
