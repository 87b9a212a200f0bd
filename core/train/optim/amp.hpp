// Automatic mixed precision (Micikevicius et al. 2018): operations that bear it run in half precision, weights and
// gradients stay float32.
#pragma once

#include <torch/torch.h>

#include <string>

namespace ddprun::train {

enum class Amp { off, bf16, fp16 };

// From train.amp of the config, which has been checked.
Amp amp_of(const std::string& name);

// While it lives, this thread's operations on devices of this type are cast as torch.autocast(device, dtype) casts
// them; at::ThreadLocalState carries that to other threads. For forward and loss: autograd casts backward by itself.
// off changes nothing.
class Autocast {
 public:
  explicit Autocast(Amp amp, torch::DeviceType device = torch::kCPU);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  const bool on_;
  const torch::DeviceType device_;
  bool was_enabled_ = false;
  at::ScalarType was_type_ = at::kFloat;
};

}  // namespace ddprun::train
