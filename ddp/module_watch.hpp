// ModuleWatch: finds parameters that changed after DistributedDataParallel was constructed.
#pragma once

#include <torch/torch.h>

#include <utility>
#include <vector>

#include "train/tensor/parameters.hpp"

namespace ddprun::ddp {

// While it lives, a backward that completes a gradient of a parameter of `model` without GradientHooks, one that was
// added, replaced or unfrozen, throws what require_unchanged() throws. Autograd reports such a gradient to no hook, so
// all objects of this class have one observer of the functions of backward (at::RecordFunction).
//
// Threads: any, one at a time.
class ModuleWatch {
 public:
  // `parameters`: the trainable ones of the model. They must outlive the object.
  ModuleWatch(train::ModelTensors model, const std::vector<train::NamedTensor>& parameters);
  ~ModuleWatch();
  ModuleWatch(const ModuleWatch&) = delete;
  ModuleWatch& operator=(const ModuleWatch&) = delete;

  // Throws Error(failure) that names a parameter and its change unless the module has the same trainable parameters as
  // in the constructor, with the same shapes, dtypes and devices. Their values and their memory may differ.
  void require_unchanged() const;

 private:
  class Callback;

  const train::ModelTensors model_;
  const std::vector<train::NamedTensor>& parameters_;
  // Of the parameters, in the constructor: shape and dtype, on the device "meta", without memory; and the device.
  std::vector<std::pair<torch::Tensor, torch::Device>> forms_;
};

}  // namespace ddprun::ddp
