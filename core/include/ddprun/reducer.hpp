// Reducer: makes every rank's gradients the average over all ranks, while backward still runs.
#pragma once

#include <cstddef>

namespace ddprun {

// Each step: add every parameter once, then finalize. One thread, the one that runs backward. Both throw Error(peer)
// when a collective fails, and Error(failure) for a parameter that was added twice or not at all.
class Reducer {
 public:
  virtual ~Reducer() = default;
  // The gradient of this parameter (its index in the list that the reducer was made with) is complete. It may be sent
  // at once: the caller must not touch the gradient until finalize has returned.
  virtual void add(std::size_t parameter) = 0;
  // Afterwards all gradients hold their average over the ranks; on a GPU, for what is queued on the calling thread's
  // current stream.
  virtual void finalize() = 0;
};

}  // namespace ddprun
