// The layers of ResNet-18 (He et al. 2016) with torchvision's names, order and initialisation, so that the same seed
// gives the weights of torchvision.models.resnet18, and its state_dict fits.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace ddprun::resnet18 {

// The layers before the first block. imagenet: 7x7 with stride 2, then max pooling, which reduce height and width by 4;
// small: 3x3 with stride 1 and no pooling, for small images such as CIFAR's.
enum class Stem { imagenet, small };

// Two 3x3 convolutions with a shortcut.
class BasicBlock final : public torch::nn::Module {
 public:
  BasicBlock(int64_t inputs, int64_t outputs, int64_t stride);
  // [batch, inputs, height, width] -> [batch, outputs, height / stride, width / stride], rounded up
  torch::Tensor forward(const torch::Tensor& input);

 private:
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr};
  torch::nn::Conv2d conv2_{nullptr};
  torch::nn::BatchNorm2d bn2_{nullptr};
  torch::nn::Sequential downsample_{nullptr};  // the projection of the shortcut; empty if the shapes are equal
};

class Network final : public torch::nn::Module {
 public:
  Network(Stem stem, int64_t classes);
  // [batch, 3, height, width] -> [batch, classes]: scores before softmax
  torch::Tensor forward(const torch::Tensor& input);

 private:
  torch::nn::Sequential layer(int64_t inputs, int64_t outputs, int64_t stride);

  Stem stem_;
  torch::nn::Conv2d conv1_{nullptr};
  torch::nn::BatchNorm2d bn1_{nullptr};
  torch::nn::Sequential layer1_{nullptr}, layer2_{nullptr}, layer3_{nullptr}, layer4_{nullptr};
  torch::nn::Linear fc_{nullptr};
};

}  // namespace ddprun::resnet18
