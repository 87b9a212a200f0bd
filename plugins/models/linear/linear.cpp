// linear: y = x W^T + b, one output, mean squared error. The model of the first DDP tutorials.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ddprun/plugin/model_options.hpp"
#include "ddprun/plugin/model_plugin.hpp"
#include "ddprun/plugin/model_shape.hpp"

namespace {

class Linear final : public ddprun::Model {
 public:
  explicit Linear(const ddprun::ModelContext& context) : shape_("linear", context.input_shape) {
    const ddprun::ModelOptions options(context.options, "linear", ddprun::kNoOptions);
    if (context.classes != 0) {
      throw std::invalid_argument("linear predicts a number, but the data set has " + std::to_string(context.classes) +
                                  (context.classes == 1 ? " class" : " classes") +
                                  "; choose a model that classifies, such as simplenet");
    }
    linear_ = torch::nn::Linear(shape_.features(), 1);
  }

  torch::nn::Module& module() override { return *linear_; }

  // [batch, input_shape...] -> [batch, 1]
  torch::Tensor forward(const torch::Tensor& input) override { return linear_(shape_.flatten(input)); }

  torch::Tensor loss(const torch::Tensor& output, const torch::Tensor& target) override {
    // For [batch] and [batch, 1], mse_loss would broadcast to [batch, batch], with only a warning.
    if (output.sizes() != target.sizes()) {
      throw std::invalid_argument("linear: one number per sample expected as target, got the shape " +
                                  ddprun::shape_text(target.sizes().vec()));
    }
    return torch::mse_loss(output, target);
  }

  torch::Tensor correct(const torch::Tensor&, const torch::Tensor&) override { return {}; }

  std::vector<std::pair<std::string, double>> learned() override {
    const torch::Tensor weight = linear_->weight.detach().to(torch::kCPU, torch::kDouble).flatten();
    std::vector<std::pair<std::string, double>> values;
    for (int64_t i = 0; i < weight.numel(); ++i) {
      const std::string name = weight.numel() == 1 ? "weight" : "weight[" + std::to_string(i) + "]";
      values.emplace_back(name, weight[i].item<double>());
    }
    values.emplace_back("bias", linear_->bias.item<double>());
    return values;
  }

 private:
  ddprun::SampleShape shape_;
  torch::nn::Linear linear_{nullptr};
};

}  // namespace

DDPRUN_MODEL_PLUGIN(Linear, "linear", "0.1.0");
