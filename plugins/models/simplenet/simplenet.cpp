// simplenet: the multi-layer perceptron of the MNIST tutorials: flatten, fc1, ReLU, fc2; cross entropy.
#include <cstdint>

#include "ddprun/plugin/classifier.hpp"
#include "ddprun/plugin/model_options.hpp"
#include "ddprun/plugin/model_shape.hpp"

namespace {

constexpr ddprun_option_spec kOptions[] = {
    ddprun::integer_option("hidden", "256", "1", "1000000", "width of the hidden layer"),
};

struct Layers final : torch::nn::Module {
  // In the same order as in Python, so that the same seed gives the same initial weights.
  Layers(int64_t inputs, int64_t hidden, int64_t classes)
      : fc1(register_module("fc1", torch::nn::Linear(inputs, hidden))),
        fc2(register_module("fc2", torch::nn::Linear(hidden, classes))) {}

  torch::nn::Linear fc1;
  torch::nn::Linear fc2;
};

class SimpleNet final : public ddprun::Classifier {
 public:
  explicit SimpleNet(const ddprun::ModelContext& context)
      : shape_("simplenet", context.input_shape),
        layers_(shape_.features(), hidden_of(context), classes_of(context, "simplenet")) {}

  torch::nn::Module& module() override { return layers_; }

  // [batch, input_shape...] -> [batch, classes]: scores before softmax
  torch::Tensor forward(const torch::Tensor& input) override {
    return layers_.fc2(torch::relu(layers_.fc1(shape_.flatten(input))));
  }

 private:
  static int64_t hidden_of(const ddprun::ModelContext& context) {
    return ddprun::ModelOptions(context.options, "simplenet", kOptions).integer("hidden");
  }

  ddprun::SampleShape shape_;
  Layers layers_;
};

}  // namespace

DDPRUN_MODEL_PLUGIN(SimpleNet, "simplenet", "0.1.0", kOptions);
