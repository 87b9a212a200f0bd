#include "support/torch_test.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "plugins/models/load_model.hpp"
#include "support/error_of.hpp"

using namespace ddprun;
using namespace ddprun::testing;

namespace {

ModelContext mnist(std::map<std::string, std::string> options = {}) {
  return {std::move(options), {1, 28, 28}, 10};
}

}  // namespace

TEST_CASE("simplenet's parameters have the names, order and shapes of the tutorials") {
  const auto model = load_model("simplenet", mnist());
  const auto parameters = model->module().named_parameters();
  CHECK(parameters.keys() == std::vector<std::string>{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"});
  CHECK(parameters["fc1.weight"].sizes() == torch::IntArrayRef({256, 784}));
  CHECK(parameters["fc1.bias"].sizes() == torch::IntArrayRef({256}));
  CHECK(parameters["fc2.weight"].sizes() == torch::IntArrayRef({10, 256}));
  CHECK(parameters["fc2.bias"].sizes() == torch::IntArrayRef({10}));
  CHECK(model->module().named_buffers().is_empty());
  CHECK(model->learned().empty());
}

TEST_CASE("simplenet gets its inputs and classes from the data and its width from the options") {
  const auto model = load_model("simplenet", {{{"hidden", "7"}}, {3, 4}, 5});
  const auto parameters = model->module().named_parameters();
  CHECK(parameters["fc1.weight"].sizes() == torch::IntArrayRef({7, 12}));
  CHECK(parameters["fc2.weight"].sizes() == torch::IntArrayRef({5, 7}));
}

TEST_CASE("simplenet computes fc2(relu(fc1(x))) and its cross entropy") {
  torch::manual_seed(1);
  const auto model = load_model("simplenet", mnist());
  const torch::NoGradGuard no_grad;
  const auto p = model->module().named_parameters();
  const torch::Tensor input = torch::randn({4, 1, 28, 28});
  const torch::Tensor target = torch::tensor({3, 1, 4, 1});
  const torch::Tensor hidden = (input.flatten(1).matmul(p["fc1.weight"].t()) + p["fc1.bias"]).clamp_min(0);
  const torch::Tensor scores = hidden.matmul(p["fc2.weight"].t()) + p["fc2.bias"];
  const torch::Tensor output = model->forward(input);
  CHECK(torch::allclose(output, scores, 1e-5, 1e-6));
  const torch::Tensor expected = -scores.log_softmax(1).gather(1, target.unsqueeze(1)).mean();
  CHECK(torch::allclose(model->loss(output, target), expected, 1e-5, 1e-6));
}

TEST_CASE("simplenet counts a sample as right when its highest score is the target's") {
  const auto model = load_model("simplenet", {{}, {2}, 3});
  const torch::Tensor output = torch::tensor({{0.1f, 0.9f, 0.f}, {5.f, 1.f, 2.f}, {0.f, 1.f, 2.f}});
  const torch::Tensor correct = model->correct(output, torch::tensor({1, 2, 2}));
  CHECK(correct.dtype() == torch::kInt64);
  CHECK(correct.item<int64_t>() == 2);
}

TEST_CASE("every parameter of simplenet gets a gradient") {
  const auto model = load_model("simplenet", mnist());
  model->loss(model->forward(torch::randn({2, 1, 28, 28})), torch::tensor({0, 9})).backward();
  for (const auto& parameter : model->module().named_parameters()) {
    CAPTURE(parameter.key());
    REQUIRE(parameter.value().grad().defined());
    CHECK(parameter.value().grad().abs().sum().item<float>() > 0);
  }
}

TEST_CASE("simplenet's error names an unknown option and the known ones") {
  CHECK(error_of([] {
          load_model("simplenet", mnist({{"hiden", "3"}}));
        }) ==
        "2: model.options.hiden = \"3\": model \"simplenet\" has no such option; expected \"hidden\" (did you mean "
        "\"hidden\"?)");
}

TEST_CASE("simplenet refuses a width that is not a whole number in its range") {
  for (const std::string value : {"0", "-1", "1000001", "2.5", "", "abc", "12 ", "99999999999999999999"}) {
    CHECK(error_of([&] {
            load_model("simplenet", mnist({{"hidden", value}}));
          }) == "2: model.options.hidden = \"" + value + "\": expected an integer from 1 to 1000000");
  }
}

TEST_CASE("simplenet refuses data without classes, and batches of another shape") {
  CHECK(error_of([] {
          load_model("simplenet", {{}, {1}, 0});
        }) ==
        "2: simplenet is a classifier and needs at least two classes, but the data set has 0 classes; choose a data "
        "set with labels");
  const auto model = load_model("simplenet", mnist());
  CHECK_THROWS_WITH_AS(
      model->forward(torch::zeros({2, 3, 32, 32})),
      "simplenet was made for samples of the shape [1, 28, 28], and got a batch of the shape [2, 3, 32, 32]",
      std::invalid_argument);
}
