// Automatic mixed precision (Micikevicius et al. 2018): suitable operations run in half precision; weights and
// gradients stay float32.
#pragma once

#include <torch/torch.h>

#include <string>

namespace ddprun::train {

enum class Amp { off, bf16, fp16 };

// From train.amp of the config, which has been validated.
Amp amp_of(const std::string& name);

// While it lives, this thread's operations on devices of this type are cast as by torch.autocast(device, dtype);
// at::ThreadLocalState passes that on to other threads. Use it for forward and loss: autograd casts backward by itself.
// Amp::off changes nothing.
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
