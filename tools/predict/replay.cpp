#include "tools/predict/replay.hpp"

#include <algorithm>

namespace ddprun::predict {

Replayed replay(const StepParts& parts, const std::vector<Bucket>& buckets, const std::vector<double>& allreduce) {
  double over = 0;  // all allreduces so far, in seconds from the start of backward
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    over = std::max(over, (1 - buckets[i].remaining) * parts.backward) + allreduce[i];
  }
  const double exposed = std::max(0.0, over - parts.backward);
  return {parts.total() + exposed, exposed};
}

}  // namespace ddprun::predict
