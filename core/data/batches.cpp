#include "data/loader.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "ddprun/error.hpp"

namespace ddprun::data {

Batches cut_batches(const std::vector<int64_t>& indices, int64_t batch_size, bool drop_last) {
  if (batch_size < 1) {
    throw Error(ExitCode::usage, "batch size of " + std::to_string(batch_size) + ": expected 1 or more");
  }
  Batches batches;
  const auto count = static_cast<int64_t>(indices.size());
  for (int64_t at = 0; at < count; at += batch_size) {
    const int64_t end = at + std::min(batch_size, count - at);
    if (drop_last && end - at < batch_size) break;
    batches.emplace_back(indices.begin() + at, indices.begin() + end);
  }
  return batches;
}

std::vector<int64_t> apportion(int64_t total, const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> counts;
  std::vector<double> remainders;
  for (const double weight : weights) {
    const double exact = static_cast<double>(total) * weight / sum;
    counts.push_back(static_cast<int64_t>(std::floor(exact)));
    remainders.push_back(exact - std::floor(exact));
  }
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t index) { return remainders[index]; });
  int64_t left = total - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (std::size_t i = 0; left > 0; ++i, --left) ++counts[order[i % order.size()]];
  return counts;
}

Batches concatenated(const std::vector<Batches>& batches) {
  Batches all(batches.at(0).size());
  for (std::size_t step = 0; step < all.size(); ++step) {
    for (const auto& of_rank : batches) all[step].insert(all[step].end(), of_rank[step].begin(), of_rank[step].end());
  }
  return all;
}

Batches share_out(const std::vector<Batches>& batches, int rank, const std::vector<double>& weights) {
  Batches mine = concatenated(batches);
  for (std::vector<int64_t>& batch : mine) {
    const std::vector<int64_t> all = std::move(batch);
    const std::vector<int64_t> counts = apportion(static_cast<int64_t>(all.size()), weights);
    const int64_t before = std::accumulate(counts.begin(), counts.begin() + rank, int64_t{0});
    batch.assign(all.begin() + before, all.begin() + before + counts[static_cast<std::size_t>(rank)]);
  }
  return mine;
}

}  // namespace ddprun::data
