// @NAME@: a model that classifies: one hidden layer, cross entropy.
// The contract is in ddprun/plugin/model_plugin.hpp; Classifier has the loss and counts the right answers.
#include <cstdint>

#include "ddprun/plugin/classifier.hpp"
#include "ddprun/plugin/model_options.hpp"
#include "ddprun/plugin/model_shape.hpp"

namespace {

constexpr ddprun_option_spec kOptions[] = {
    ddprun::integer_option("hidden", "128", "1", "100000", "width of the hidden layer"),
};

struct Layers final : torch::nn::Module {
  Layers(int64_t inputs, int64_t hidden, int64_t classes)
      : first(register_module("first", torch::nn::Linear(inputs, hidden))),
        second(register_module("second", torch::nn::Linear(hidden, classes))) {}

  torch::nn::Linear first;
  torch::nn::Linear second;
};

class Network final : public ddprun::Classifier {
 public:
  explicit Network(const ddprun::ModelContext& context)
      : shape_("@NAME@", context.input_shape),
        layers_(shape_.features(), hidden_of(context), classes_of(context, "@NAME@")) {}

  torch::nn::Module& module() override { return layers_; }

  // [batch, input_shape...] -> [batch, classes]: scores before softmax
  torch::Tensor forward(const torch::Tensor& input) override {
    return layers_.second(torch::relu(layers_.first(shape_.flatten(input))));
  }

 private:
  static int64_t hidden_of(const ddprun::ModelContext& context) {
    return ddprun::ModelOptions(context.options, "@NAME@", kOptions).integer("hidden");
  }

  ddprun::SampleShape shape_;
  Layers layers_;
};

}  // namespace

DDPRUN_MODEL_PLUGIN(Network, "@NAME@", "0.1.0", kOptions);
