// Which gradients are averaged together.
#pragma once

#include <cstddef>
#include <vector>

#include "ddprun/comm_backend.hpp"

namespace ddprun::comm {

// The properties of a parameter that the plan depends on.
struct ParameterInfo {
  std::size_t elements = 0;
  DType dtype = DType::float32;
};

struct Slot {
  std::size_t parameter = 0;
  std::size_t offset = 0;  // in elements, from the start of the bucket
};

struct BucketPlan {
  DType dtype = DType::float32;
  std::size_t elements = 0;
  std::vector<Slot> slots;
};

// A pure function, so every rank computes the same plan.
// Fills buckets in the given order of parameters. A bucket holds one dtype and is complete when it reaches its cap. For
// a model of one dtype this equals c10d's compute_bucket_assignment_by_size. The first bucket has its own cap: a small
// one starts communication early (Li et al. 2020, "PyTorch Distributed", section 3.2.3). The result lists the buckets
// in the order in which their last gradient becomes ready; they are reduced in this order.
std::vector<BucketPlan> plan_buckets(const std::vector<ParameterInfo>& parameters,
                                     const std::vector<std::size_t>& order, std::size_t first_cap_bytes,
                                     std::size_t cap_bytes);

}  // namespace ddprun::comm
