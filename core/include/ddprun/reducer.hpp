// Reducer: averages the gradients over all ranks while backward is still running.
#pragma once

#include <cstddef>

namespace ddprun {

// In each step, call add once for every parameter, then finalize. All calls come from the thread that runs backward.
// Both functions throw Error(peer) if a collective fails, and Error(failure) if a parameter was added twice or not at
// all.
class Reducer {
 public:
  virtual ~Reducer() = default;
  // The gradient of this parameter is complete. `parameter` is the index in the list that the reducer was constructed
  // with. The reducer may send the gradient immediately, so the caller must not touch it until finalize has returned.
  virtual void add(std::size_t parameter) = 0;
  // Afterwards every gradient is the average over the ranks. On a GPU this holds for work that is queued later on the
  // calling thread's current stream.
  virtual void finalize() = 0;
};

}  // namespace ddprun
