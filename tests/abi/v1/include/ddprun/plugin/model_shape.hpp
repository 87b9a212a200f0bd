// ddprun/plugin/model_shape.hpp: the shape that a model was made for: checks that a batch has it, and flattens the batch for
// models that see a sample as a vector.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ddprun {

// "[1, 28, 28]"
inline std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

// The shape of one sample, without the batch dimension.
class SampleShape {
 public:
  // Throws std::invalid_argument, naming the model, when an extent is not positive.
  SampleShape(std::string model, std::vector<int64_t> shape) : model_(std::move(model)), shape_(std::move(shape)) {
    for (const int64_t extent : shape_) {
      if (extent < 1) throw std::invalid_argument(model_ + " cannot take samples of the shape " + shape_text(shape_));
      features_ *= extent;
    }
  }

  // Elements of one sample; 1 for a scalar.
  int64_t features() const { return features_; }

  // Throws std::invalid_argument that states both shapes unless the batch is [batch, shape...].
  void check(const torch::Tensor& batch) const {
    if (batch.dim() == 0 || batch.sizes().slice(1) != torch::IntArrayRef(shape_)) {
      throw std::invalid_argument(model_ + " was made for samples of the shape " + shape_text(shape_) +
                                  ", and got a batch of the shape " + shape_text(batch.sizes().vec()));
    }
  }

  // [batch, shape...] -> [batch, features], a view where the memory allows. Throws as check does.
  torch::Tensor flatten(const torch::Tensor& batch) const {
    check(batch);
    return batch.reshape({batch.size(0), features_});
  }

 private:
  std::string model_;
  std::vector<int64_t> shape_;
  int64_t features_ = 1;
};

}  // namespace ddprun
