#include "support/torch_test.hpp"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugins/models/load_model.hpp"
#include "support/error_of.hpp"

using namespace ddprun;
using namespace ddprun::testing;

namespace {

ModelContext line() {
  return {{}, {1}, 0};
}

// Sets weight and bias as if the model had learned them.
void set(Model& model, double weight, double bias) {
  const torch::NoGradGuard no_grad;
  model.module().named_parameters()["weight"].fill_(weight);
  model.module().named_parameters()["bias"].fill_(bias);
}

}  // namespace

TEST_CASE("linear has a weight and a bias, named as torch.nn.Linear names them") {
  const auto model = load_model("linear", {{}, {2, 3}, 0});
  const auto parameters = model->module().named_parameters();
  CHECK(parameters.keys() == std::vector<std::string>{"weight", "bias"});
  CHECK(parameters["weight"].sizes() == torch::IntArrayRef({1, 6}));
  CHECK(parameters["bias"].sizes() == torch::IntArrayRef({1}));
}

TEST_CASE("linear computes the line and its mean squared error, with gradients") {
  const auto model = load_model("linear", line());
  set(*model, 2, 3);
  const torch::Tensor output = model->forward(torch::tensor({{1.f}, {-2.f}}));
  CHECK(torch::equal(output, torch::tensor({{5.f}, {-1.f}})));
  const torch::Tensor loss = model->loss(output, torch::tensor({{4.f}, {1.f}}));
  CHECK(loss.item<float>() == 2.5f);  // (1 + 4) / 2
  loss.backward();
  CHECK(model->module().named_parameters()["bias"].grad().item<float>() == -1.f);   // 2 * (1 - 2) / 2
  CHECK(model->module().named_parameters()["weight"].grad().item<float>() == 5.f);  // 2 * (1 * 1 + -2 * -2) / 2
}

TEST_CASE("linear has no accuracy, and reports what it learned") {
  const auto model = load_model("linear", line());
  set(*model, 1.5, -0.25);
  CHECK_FALSE(model->correct(torch::zeros({2, 1}), torch::zeros({2, 1})).defined());
  CHECK(model->learned() == std::vector<std::pair<std::string, double>>{{"weight", 1.5}, {"bias", -0.25}});
  const auto wide = load_model("linear", {{}, {2}, 0});
  set(*wide, 0.5, 0);
  CHECK(wide->learned()[1] == std::pair<std::string, double>{"weight[1]", 0.5});
}

TEST_CASE("linear refuses options, classes, and shapes that do not fit") {
  CHECK(error_of([] {
          load_model("linear", {{{"hidden", "3"}}, {1}, 0});
        }) == "2: model.options.hidden = \"3\": model \"linear\" has no options; remove the key");
  CHECK(error_of([] {
          load_model("linear", {{}, {1, 28, 28}, 10});
        }) ==
        "2: linear predicts a number, but the data set has 10 classes; choose a model that classifies, such as "
        "simplenet");
  CHECK(error_of([] { load_model("linear", {{}, {3, 0}, 0}); }) == "2: linear cannot take samples of the shape [3, 0]");
}

TEST_CASE("linear refuses a target that mean squared error would broadcast") {
  const auto model = load_model("linear", line());
  const torch::Tensor output = model->forward(torch::zeros({4, 1}));
  CHECK_THROWS_WITH_AS(model->loss(output, torch::zeros({4})),
                       "linear: one number per sample expected as target, got the shape [4]", std::invalid_argument);
}
