#include "tools/compare/order.hpp"

#include <algorithm>

namespace ddprun::compare {

std::vector<std::size_t> turn_order(std::size_t variants, std::size_t round) {
  std::vector<std::size_t> order;
  for (std::size_t place = 0; place < variants; ++place) {
    // 0, 1, n-1, 2, n-2, ...: all distances between neighbours differ.
    const std::size_t first = place % 2 == 1 ? (place + 1) / 2 : (variants - place / 2) % variants;
    order.push_back((first + round / 2) % variants);
  }
  if (round % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace ddprun::compare
