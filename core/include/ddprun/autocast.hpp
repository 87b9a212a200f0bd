// ddprun/autocast.hpp: operations in half precision, as torch.autocast in Python. ddprun/amp.hpp shows its use.
#pragma once

#include <torch/torch.h>

#include <optional>

namespace ddprun {

// While it lives, suitable operations of this thread on devices of this type run in `dtype`, by the rules of
// torch.autocast; weights and gradients keep their dtype. Use it for forward and loss only: autograd casts backward by
// itself. Objects may be nested; destroy them in reverse order, on the same thread.
class Autocast {
 public:
  // `dtype`: bfloat16 or float16; by default bfloat16 on the CPU and float16 on CUDA. With `enabled` = false,
  // operations are not cast, even inside of another Autocast. Throws Error(usage) for another dtype.
  explicit Autocast(torch::DeviceType device, std::optional<torch::Dtype> dtype = std::nullopt, bool enabled = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const torch::DeviceType device_;
  const bool was_enabled_;
  const torch::Dtype was_dtype_;
};

}  // namespace ddprun
