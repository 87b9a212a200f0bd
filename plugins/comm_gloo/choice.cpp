#include "choice.hpp"

namespace ddprun::gloo_backend {
namespace {

// Measured on 2026-11-21 with float32 sums in place, ranks as processes of one busy machine with 2 cores, over
// loopback; medians of three runs of 8 to 40 calls each, for 64 KiB to 25 MiB and worlds of 2, 4 and 8. There the ring
// lost up to 4 MiB or more: it sends at least 4 (n - 1) messages one after the other, the tree 2 log2(n). The limit is
// below the crossing for worlds above 2, because between machines the tree's root has to send and receive log2(n) whole
// vectors.
constexpr char kStock[] = R"(ddprun-tuning 1
gloo 2 8388608 tree
gloo 2 max ring
gloo max 2097152 tree
gloo max max ring
)";

}  // namespace

Tuning tuning_for(const Host& host) {
  return tuning_of(host, "gloo", kAlgorithms, kStock);
}

}  // namespace ddprun::gloo_backend
