// One allreduce of a bucket.
#pragma once

#include <chrono>
#include <cstddef>

namespace ddprun::train {

struct Transfer {
  std::size_t bytes = 0;  // payload: the bucket's elements
  // From the call (on a GPU: from when the stream reached it) until all data had arrived, including the wait for slower
  // ranks. On the host's clock.
  std::chrono::steady_clock::time_point begin, end;

  double seconds() const { return std::chrono::duration<double>(end - begin).count(); }
};

}  // namespace ddprun::train
