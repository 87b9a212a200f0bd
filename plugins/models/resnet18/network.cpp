#include "network.hpp"

#include <memory>

namespace ddprun::resnet18 {
namespace {

using torch::nn::BatchNorm2d;
using torch::nn::Conv2d;
using torch::nn::Sequential;

// Without bias. The padding is chosen so that only the stride makes the image smaller.
Conv2d convolution(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride) {
  return Conv2d(torch::nn::Conv2dOptions(inputs, outputs, kernel).stride(stride).padding(kernel / 2).bias(false));
}

}  // namespace

BasicBlock::BasicBlock(int64_t inputs, int64_t outputs, int64_t stride) {
  // Constructed first but registered last, as in torchvision, so that random numbers and names match.
  Sequential projection{nullptr};
  if (stride != 1 || inputs != outputs) {
    projection = Sequential(convolution(inputs, outputs, 1, stride), BatchNorm2d(outputs));
  }
  conv1_ = register_module("conv1", convolution(inputs, outputs, 3, stride));
  bn1_ = register_module("bn1", BatchNorm2d(outputs));
  conv2_ = register_module("conv2", convolution(outputs, outputs, 3, 1));
  bn2_ = register_module("bn2", BatchNorm2d(outputs));
  if (projection) downsample_ = register_module("downsample", projection);
}

// In place if backward does not need the overwritten values.
torch::Tensor BasicBlock::forward(const torch::Tensor& input) {
  torch::Tensor output = bn1_(conv1_(input)).relu_();
  output = bn2_(conv2_(output));
  output += downsample_ ? downsample_->forward(input) : input;
  return output.relu_();
}

Network::Network(Stem stem, int64_t classes) : stem_(stem) {
  conv1_ = register_module("conv1", stem == Stem::imagenet ? convolution(3, 64, 7, 2) : convolution(3, 64, 3, 1));
  bn1_ = register_module("bn1", BatchNorm2d(64));
  layer1_ = register_module("layer1", layer(64, 64, 1));
  layer2_ = register_module("layer2", layer(64, 128, 2));
  layer3_ = register_module("layer3", layer(128, 256, 2));
  layer4_ = register_module("layer4", layer(256, 512, 2));
  fc_ = register_module("fc", torch::nn::Linear(512, classes));
  // BatchNorm's own defaults are weight 1 and bias 0; the other layers keep their constructor's values.
  for (const auto& module : modules(false)) {
    if (const auto* conv = module->as<Conv2d>()) {
      torch::nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
    }
  }
}

Sequential Network::layer(int64_t inputs, int64_t outputs, int64_t stride) {
  Sequential blocks;
  blocks->push_back(std::make_shared<BasicBlock>(inputs, outputs, stride));
  blocks->push_back(std::make_shared<BasicBlock>(outputs, outputs, 1));
  return blocks;
}

torch::Tensor Network::forward(const torch::Tensor& input) {
  torch::Tensor x = bn1_(conv1_(input)).relu_();
  if (stem_ == Stem::imagenet) x = torch::max_pool2d(x, 3, 2, 1);
  x = layer1_->forward(x);
  x = layer2_->forward(x);
  x = layer3_->forward(x);
  x = layer4_->forward(x);
  return fc_(torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
}

}  // namespace ddprun::resnet18
