// Which parameter's gradient lies in which bucket, and where: a pure function, so that every rank computes the same
// plan.
#pragma once

#include <cstddef>
#include <vector>

#include "ddprun/comm_backend.hpp"

namespace ddprun::train {

// What the plan needs to know of a parameter.
struct ParameterInfo {
  std::size_t elements = 0;
  DType dtype = DType::float32;
};

struct Slot {
  std::size_t parameter = 0;
  std::size_t offset = 0;  // elements from the bucket's start
};

struct BucketPlan {
  DType dtype = DType::float32;
  std::size_t elements = 0;
  std::vector<Slot> slots;
};

// Fills buckets in the given order of parameters. A bucket holds one dtype and closes as soon as it holds its cap or
// more; for a model of one dtype, as c10d's compute_bucket_assignment_by_size does. The first has a cap of its own: a
// small one starts communicating early (Li et al. 2020, "PyTorch Distributed", section 3.2.3). Buckets are listed in
// the order in which their last gradient comes, which is the order in which they are reduced.
std::vector<BucketPlan> plan_buckets(const std::vector<ParameterInfo>& parameters,
                                     const std::vector<std::size_t>& order, std::size_t first_cap_bytes,
                                     std::size_t cap_bytes);

}  // namespace ddprun::train
