// What the ranks compare before a collective moves data: its fingerprint, which is the shape of the call.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "comm/call.hpp"

namespace ddprun::comm {

// "rank 0 called allreduce 12 (float32 x 100, sum), rank 1 called broadcast 12 (int64 x 7, root 0)": each shape once,
// with the ranks that sent it.
std::string describe_disagreement(std::span<const CallShape> shapes);

// Brings the fingerprints of all ranks together. One thread at a time, abort excepted.
class FingerprintExchange {
 public:
  virtual ~FingerprintExchange() = default;
  // Every rank's fingerprint in rank order; valid until the next call. Blocks until all are there. Throws CommError
  // that names the rank: one that does not come in time (timeout), that has ended or left (peer_lost); or aborted.
  virtual std::span<const CallShape> exchange(const CallShape& mine, std::chrono::milliseconds deadline) = 0;
  // Ends a blocked and every later exchange with an error. Any thread.
  virtual void abort() noexcept = 0;
};

// For ranks that share no folder, such as those of torchrun: over the backend itself, by an allgather of one fixed
// size, which therefore always matches, before each collective. `backend` must outlive the exchange.
std::unique_ptr<FingerprintExchange> exchange_over(CommBackend& backend);

}  // namespace ddprun::comm
