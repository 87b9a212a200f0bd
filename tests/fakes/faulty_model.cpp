// A small model. The option `fault` names the one thing that it does wrong; without it, it keeps the contract.
// docs/conformance.md lists the faults with the check that finds each.
#include <unistd.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ddprun/plugin/classifier.hpp"
#include "ddprun/plugin/model_options.hpp"
#include "ddprun/plugin/model_shape.hpp"

namespace {

constexpr int64_t kHidden = 256;

int counted() {
  static int count = 0;
  return ++count;
}

struct Layers final : torch::nn::Module {
  Layers(int64_t inputs, int64_t classes, const std::string& first)
      : fc1(register_module(first, torch::nn::Linear(inputs, kHidden))),
        drop(register_module("drop", torch::nn::Dropout(0.4))),
        fc2(register_module("fc2", torch::nn::Linear(kHidden, classes))),
        calls(register_buffer("calls", torch::zeros({}))) {}

  torch::nn::Linear fc1;
  torch::nn::Dropout drop;
  torch::nn::Linear fc2;
  torch::Tensor calls;
};

constexpr ddprun_option_spec kOptions[] = {ddprun::text_option("fault", nullptr, "what it breaks")};

class Faulty final : public ddprun::Classifier {
 public:
  explicit Faulty(const ddprun::ModelContext& context)
      : fault_(fault_of(context)),
        shape_("faulty", context.input_shape),
        layers_(std::make_shared<Layers>(shape_.features(), classes_of(context, "faulty"),
                                         is("counts_models") ? "fc1_" + std::to_string(counted()) : "fc1")) {
    if (!is("any_option")) ddprun::ModelOptions(context.options, "faulty", kOptions);
    const torch::NoGradGuard no_grad;
    if (is("random_weights")) layers_->fc1->bias.fill_(static_cast<double>(std::random_device()() % 100'000));
    if (is("uses_process")) layers_->fc1->bias.fill_(static_cast<double>(::getpid()));
    if (is("sets_threads")) torch::set_num_threads(3);
    if (is("leaks")) {
      static auto& kept = *new std::vector<std::shared_ptr<Layers>>;
      kept.push_back(layers_);
    }
  }

  torch::nn::Module& module() override { return *layers_; }

  torch::Tensor forward(const torch::Tensor& input) override {
    if (is("registers_later") && !layers_->named_buffers().contains("mean")) {
      layers_->register_buffer("mean", torch::zeros({1}));
    }
    if (is("replaces_parameter")) layers_->replace_module("fc2", layers_->fc2 = again(*layers_->fc2));
    if (is("counts_evaluations") && !layers_->is_training()) layers_->calls.add_(1);
    torch::Tensor output = layers_->fc2(layers_->drop(torch::relu(layers_->fc1(shape_.flatten(input)))));
    if (is("counts_calls")) output = output * counted();
    if (is("own_random")) output = output * static_cast<double>(1 + std::random_device()() % 100'000);
    if (is("varies")) {  // an operation without a deterministic kernel, which changes nothing
      torch::Tensor copy = output.detach().clone();
      copy.put_(torch::zeros({1}, torch::kInt64), copy.flatten().narrow(0, 0, 1).clone());
    }
    return is("one_output") ? output.mean(0, true) : output;
  }

  torch::Tensor loss(const torch::Tensor& output, const torch::Tensor& target) override {
    const torch::Tensor mean = Classifier::loss(output, target);
    if (is("detaches")) return mean.detach();
    return is("sums_loss") ? mean * output.size(0) : mean;
  }

  torch::Tensor correct(const torch::Tensor& output, const torch::Tensor& target) override {
    const torch::Tensor count = Classifier::correct(output, target);
    return is("correct_is_mean") ? count.to(torch::kFloat) / output.size(0) : count;
  }

 private:
  static std::string fault_of(const ddprun::ModelContext& context) {
    const auto fault = context.options.find("fault");
    return fault == context.options.end() ? "none" : fault->second;
  }
  static torch::nn::Linear again(const torch::nn::LinearImpl& layer) { return torch::nn::Linear(layer.options); }
  bool is(const char* name) const { return fault_ == name; }

  const std::string fault_;
  ddprun::SampleShape shape_;
  std::shared_ptr<Layers> layers_;
};

}  // namespace

DDPRUN_MODEL_PLUGIN(Faulty, "faulty", "1.0", ddprun::kUndeclaredOptions);
