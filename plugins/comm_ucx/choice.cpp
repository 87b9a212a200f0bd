#include "choice.hpp"

namespace ddprun::ucx_backend {

bool tree_is_faster(uint64_t bytes, int world) {
  return bytes <= (world <= 2 ? 16u << 10 : 32u << 10);
}

}  // namespace ddprun::ucx_backend
