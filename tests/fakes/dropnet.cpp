// A model with the state that a resumed run can lose: dropout's random masks, and BatchNorm's running statistics.
#include "ddprun/plugin/classifier.hpp"
#include "ddprun/plugin/model_options.hpp"
#include "ddprun/plugin/model_shape.hpp"

namespace {

constexpr int64_t kHidden = 16;

struct Layers final : torch::nn::Module {
  Layers(int64_t inputs, int64_t classes)
      : fc1(register_module("fc1", torch::nn::Linear(inputs, kHidden))),
        norm(register_module("norm", torch::nn::BatchNorm1d(kHidden))),
        drop(register_module("drop", torch::nn::Dropout(0.4))),
        fc2(register_module("fc2", torch::nn::Linear(kHidden, classes))) {}

  torch::nn::Linear fc1;
  torch::nn::BatchNorm1d norm;
  torch::nn::Dropout drop;
  torch::nn::Linear fc2;
};

class DropNet final : public ddprun::Classifier {
 public:
  explicit DropNet(const ddprun::ModelContext& context)
      : shape_("dropnet", context.input_shape), layers_(shape_.features(), classes_of(context, "dropnet")) {
    ddprun::ModelOptions(context.options, "dropnet", ddprun::kNoOptions);
  }

  torch::nn::Module& module() override { return layers_; }

  torch::Tensor forward(const torch::Tensor& input) override {
    return layers_.fc2(layers_.drop(torch::relu(layers_.norm(layers_.fc1(shape_.flatten(input))))));
  }

 private:
  ddprun::SampleShape shape_;
  Layers layers_;
};

}  // namespace

DDPRUN_MODEL_PLUGIN(DropNet, "dropnet", "0.1.0");
