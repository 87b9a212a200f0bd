// lenet: LeNet-5, from Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, "Gradient-based learning applied to document
// recognition", Proceedings of the IEEE 86(11), 1998. As is usual today, it differs from the paper in three places: C3
// sees all maps of S2, the pooling layers have no weights, and the output is a linear layer with cross entropy.
// The contract is in ddprun/plugin/model_plugin.hpp.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddprun/plugin/classifier.hpp"
#include "ddprun/plugin/model_options.hpp"
#include "ddprun/plugin/model_shape.hpp"

namespace {

constexpr ddprun_option_spec kOptions[] = {
    ddprun::choice_option("activation", "tanh", "tanh|relu", "the function after each layer but the last"),
    ddprun::real_option("dropout", "0", "0", "0.9", "the part of F6's outputs that is dropped in training"),
};

// The names of the layers are those of the paper; state_dict has them.
struct Layers final : torch::nn::Module {
  Layers(int64_t padding, double drop, int64_t classes)
      : c1(register_module("c1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 6, 5).padding(padding)))),
        c3(register_module("c3", torch::nn::Conv2d(6, 16, 5))),
        c5(register_module("c5", torch::nn::Conv2d(16, 120, 5))),
        f6(register_module("f6", torch::nn::Linear(120, 84))),
        dropout(register_module("dropout", torch::nn::Dropout(drop))),
        output(register_module("output", torch::nn::Linear(84, classes))) {}

  torch::nn::Conv2d c1, c3, c5;
  torch::nn::Linear f6;
  torch::nn::Dropout dropout;
  torch::nn::Linear output;
};

class LeNet final : public ddprun::Classifier {
 public:
  explicit LeNet(const ddprun::ModelContext& context) : LeNet(context, {context.options, "lenet", kOptions}) {}

  torch::nn::Module& module() override { return layers_; }

  // [batch, 1, 32, 32] or [batch, 1, 28, 28] -> [batch, classes]: scores before softmax
  torch::Tensor forward(const torch::Tensor& input) override {
    shape_.check(input);
    torch::Tensor maps = activated(layers_.c1(input));         // [batch, 6, 28, 28]
    maps = activated(layers_.c3(torch::avg_pool2d(maps, 2)));  // [batch, 16, 10, 10]
    maps = activated(layers_.c5(torch::avg_pool2d(maps, 2)));  // [batch, 120, 1, 1]
    const torch::Tensor features = activated(layers_.f6(maps.flatten(1)));
    return layers_.output(layers_.dropout(features));
  }

 private:
  LeNet(const ddprun::ModelContext& context, const ddprun::ModelOptions& options)
      : shape_("lenet", context.input_shape),
        relu_(options.text("activation") == "relu"),
        layers_(padding_of(context.input_shape), options.real("dropout"), classes_of(context, "lenet")) {}

  torch::Tensor activated(const torch::Tensor& input) const { return relu_ ? torch::relu(input) : torch::tanh(input); }

  // The paper puts digits of 28x28 into the middle of pictures of 32x32; padding does the same.
  static int64_t padding_of(const std::vector<int64_t>& shape) {
    if (shape == std::vector<int64_t>{1, 32, 32}) return 0;
    if (shape == std::vector<int64_t>{1, 28, 28}) return 2;
    throw std::invalid_argument(
        "lenet takes grey pictures of the shape [1, 28, 28] or [1, 32, 32], but the data set has " +
        ddprun::shape_text(shape) + "; choose another data set, or change its image_size");
  }

  ddprun::SampleShape shape_;
  bool relu_;
  Layers layers_;
};

}  // namespace

DDPRUN_MODEL_PLUGIN(LeNet, "lenet", "0.1.0", kOptions);
