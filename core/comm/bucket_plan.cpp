#include "comm/bucket_plan.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace ddprun::comm {
namespace {

struct Open {
  BucketPlan plan;
  std::size_t last = 0;  // position of its last gradient in the order
};

}  // namespace

std::vector<BucketPlan> plan_buckets(const std::vector<ParameterInfo>& parameters,
                                     const std::vector<std::size_t>& order, std::size_t first_cap_bytes,
                                     std::size_t cap_bytes) {
  std::vector<Open> closed;
  std::map<std::pair<DType, bool>, Open> open;
  for (std::size_t position = 0; position < order.size(); ++position) {
    const ParameterInfo& parameter = parameters.at(order[position]);
    auto& [type, bucket] = *open.try_emplace({parameter.dtype, parameter.is_complex}).first;
    bucket.plan.dtype = parameter.dtype;
    bucket.plan.slots.push_back({order[position], bucket.plan.elements});
    bucket.plan.elements += parameter.elements;
    bucket.last = position;
    const std::size_t cap = closed.empty() ? first_cap_bytes : cap_bytes;
    if (bucket.plan.elements * size_of(parameter.dtype) < cap) continue;
    closed.push_back(std::move(bucket));
    open.erase(open.find(type));
  }
  for (auto& [type, bucket] : open) closed.push_back(std::move(bucket));
  std::sort(closed.begin(), closed.end(), [](const Open& a, const Open& b) { return a.last < b.last; });

  std::vector<BucketPlan> plan;
  plan.reserve(closed.size());
  for (Open& bucket : closed) plan.push_back(std::move(bucket.plan));
  return plan;
}

}  // namespace ddprun::comm
