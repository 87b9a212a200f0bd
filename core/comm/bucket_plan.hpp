// Which gradients are averaged together: the plan of the buckets.
#pragma once

#include <cstddef>
#include <vector>

#include "ddprun/collective.hpp"

namespace ddprun::comm {

// The properties of a parameter that the plan depends on.
struct ParameterInfo {
  std::size_t elements = 0;
  DType dtype = DType::float32;
  bool is_complex = false;  // its elements are pairs of a real and an imaginary part, which count as two
};

// The place of one gradient in a bucket.
struct Slot {
  std::size_t parameter = 0;  // index into `parameters`
  std::size_t offset = 0;     // in elements, from the start of the bucket
};

struct BucketPlan {
  DType dtype = DType::float32;  // of all its gradients, which are all complex or all real
  std::size_t elements = 0;      // the sum of its gradients' elements, not bytes
  std::vector<Slot> slots;       // without gaps, in the given order
};

// A pure function, so every rank computes the same plan. Any thread.
//
// `order` holds the index of each parameter once: the order in which gradients become ready. Buckets are filled in this
// order. A bucket holds one dtype and is complete when it holds its cap or more, so it exceeds the cap by less than one
// gradient. The cap is `first_cap_bytes` until any bucket is complete, of whichever dtype, and `cap_bytes` from then
// on. The result lists the buckets in the order in which their last gradient becomes ready; they are reduced in this
// order. Throws std::out_of_range if an index in `order` is not one of `parameters`.
//
// This is the bucketing of PyTorch DDP, where a small first bucket starts communication early (Li et al. 2020, "PyTorch
// Distributed", section 3.2.3). For a model of one dtype the result equals c10d's compute_bucket_assignment_by_size.
std::vector<BucketPlan> plan_buckets(const std::vector<ParameterInfo>& parameters,
                                     const std::vector<std::size_t>& order, std::size_t first_cap_bytes,
                                     std::size_t cap_bytes);

}  // namespace ddprun::comm
