#include "support/torch_test.hpp"

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugins/models/load_model.hpp"
#include "support/error_of.hpp"

using namespace ddprun;
using namespace ddprun::testing;

namespace {

using OptionMap = std::map<std::string, std::string>;

ModelContext images(int64_t height, int64_t width, OptionMap options = {}, int64_t classes = 10) {
  return {std::move(options), {3, height, width}, classes};
}

int64_t parameters_of(Model& model) {
  int64_t count = 0;
  for (const auto& parameter : model.module().parameters()) count += parameter.numel();
  return count;
}

// Copies of all values, by name.
std::map<std::string, torch::Tensor> values_of(const torch::OrderedDict<std::string, torch::Tensor>& tensors) {
  std::map<std::string, torch::Tensor> values;
  for (const auto& item : tensors) values[item.key()] = item.value().detach().clone();
  return values;
}

void train_once(Model& model, const torch::Tensor& input) {
  const torch::Tensor target = torch::arange(input.size(0)).remainder(10);
  model.loss(model.forward(input), target).backward();
}

}  // namespace

TEST_CASE("resnet18 has as many parameters as torchvision's") {
  CHECK(parameters_of(*load_model("resnet18", images(224, 224, {}, 1000))) == 11'689'512);
  CHECK(parameters_of(*load_model("resnet18", images(224, 224))) == 11'181'642);
  // 64 filters of 3x3 in place of 7x7
  CHECK(parameters_of(*load_model("resnet18", images(32, 32, {{"stem", "small"}}))) == 11'181'642 - 64 * 3 * (49 - 9));
}

TEST_CASE(
    "resnet18 starts with BatchNorm's weights at one, biases and running means at zero, running variances at one") {
  const auto model = load_model("resnet18", images(32, 32));
  int checked = 0;
  const auto all_are = [&](const torch::Tensor& tensor, double value) {
    ++checked;
    return tensor.eq(value).all().item<bool>();
  };
  for (const auto& item : model->module().named_parameters()) {
    CAPTURE(item.key());
    if (item.value().dim() > 1 || item.key().starts_with("fc.")) continue;
    CHECK(all_are(item.value(), item.key().ends_with(".weight") ? 1 : 0));
  }
  for (const auto& item : model->module().named_buffers()) {
    CAPTURE(item.key());
    CHECK(all_are(item.value(), item.key().ends_with("running_var") ? 1 : 0));
  }
  CHECK(checked == 20 * 5);
}

TEST_CASE("resnet18 scores images of any size from the factor of its reduction on") {
  const torch::NoGradGuard no_grad;
  for (const auto& [height, width] : std::vector<std::pair<int64_t, int64_t>>{{32, 32}, {33, 70}, {224, 224}}) {
    CAPTURE(height);
    const auto model = load_model("resnet18", images(height, width, {}, 7));
    CHECK(model->forward(torch::randn({2, 3, height, width})).sizes() == torch::IntArrayRef({2, 7}));
  }
  for (const auto& [height, width] : std::vector<std::pair<int64_t, int64_t>>{{8, 8}, {9, 17}, {32, 32}}) {
    CAPTURE(height);
    const auto model = load_model("resnet18", images(height, width, {{"stem", "small"}}, 7));
    CHECK(model->forward(torch::randn({2, 3, height, width})).sizes() == torch::IntArrayRef({2, 7}));
  }
}

TEST_CASE("resnet18's running statistics change in training and stay in evaluation") {
  const auto model = load_model("resnet18", images(32, 32));
  model->module().eval();
  const auto before = values_of(model->module().named_buffers());
  REQUIRE(before.size() == 20 * 3);
  model->forward(torch::randn({4, 3, 32, 32}));
  for (const auto& item : model->module().named_buffers()) CHECK(torch::equal(item.value(), before.at(item.key())));
  model->module().train();
  model->forward(torch::randn({4, 3, 32, 32}));
  for (const auto& item : model->module().named_buffers()) {
    CAPTURE(item.key());
    CHECK_FALSE(torch::equal(item.value(), before.at(item.key())));
  }
  CHECK(model->module().named_buffers()["layer4.1.bn2.num_batches_tracked"].item<int64_t>() == 1);
}

TEST_CASE("every parameter of resnet18 gets a gradient, under both stems and memory formats") {
  for (const OptionMap& options :
       {OptionMap{}, OptionMap{{"stem", "small"}}, OptionMap{{"memory_format", "channels_last"}}}) {
    const auto model = load_model("resnet18", images(32, 32, options));
    train_once(*model, torch::randn({4, 3, 32, 32}));
    for (const auto& parameter : model->module().named_parameters()) {
      CAPTURE(parameter.key());
      REQUIRE(parameter.value().grad().defined());
      CHECK(parameter.value().grad().abs().sum().item<float>() > 0);
    }
  }
}

TEST_CASE("channels_last changes the order in memory, but neither the weights nor the results") {
  const auto make = [](const std::string& format) {
    torch::manual_seed(3);
    return load_model("resnet18", images(64, 64, {{"memory_format", format}}));
  };
  const auto plain = make("contiguous");
  const auto last = make("channels_last");
  const auto weights = plain->module().named_parameters();
  const auto others = last->module().named_parameters();
  CHECK(weights.keys() == others.keys());
  for (const auto& item : weights) CHECK(torch::equal(item.value(), others[item.key()]));
  CHECK(weights["layer1.0.conv1.weight"].is_contiguous());
  CHECK(others["layer1.0.conv1.weight"].is_contiguous(torch::MemoryFormat::ChannelsLast));
  CHECK_FALSE(others["layer1.0.conv1.weight"].is_contiguous());
  const torch::Tensor input = torch::randn({4, 3, 64, 64});
  CHECK(torch::allclose(plain->forward(input), last->forward(input), 1e-4, 1e-4));
}

TEST_CASE("resnet18 refuses samples that are not colour images, and images too small for its stem") {
  CHECK(error_of([] {
          load_model("resnet18", {{}, {1, 28, 28}, 10});
        }) ==
        "2: resnet18 takes images of the shape [3, height, width], but the samples of the data set have the shape "
        "[1, 28, 28]; choose a data set of colour images");
  CHECK(error_of([] {
          load_model("resnet18", {{}, {3}, 10});
        }).starts_with("2: resnet18 takes images of the shape [3, height, width]"));
  CHECK(error_of([] { load_model("resnet18", images(64, 31)); }) ==
        "2: resnet18 makes an image 32 times smaller, and one of the shape [3, 64, 31] is too small for that; give "
        "larger images, or model.options.stem = \"small\" (from 8x8)");
  CHECK(error_of([] {
          load_model("resnet18", images(7, 64, {{"stem", "small"}}));
        }) ==
        "2: resnet18 makes an image 8 times smaller, and one of the shape [3, 7, 64] is too small for that; give "
        "larger images");
  CHECK(error_of([] { load_model("resnet18", images(32, 32, {}, 0)); }) ==
        "2: resnet18 is a classifier and needs at least two classes, but the data set has 0 classes; choose a data set "
        "with labels");
}

TEST_CASE("resnet18's errors name the values of an option, and the options that it has") {
  CHECK(error_of([] {
          load_model("resnet18", images(32, 32, {{"stem", "smal"}}));
        }) == "2: model.options.stem = \"smal\": expected \"imagenet\" or \"small\" (did you mean \"small\"?)");
  CHECK(error_of([] {
          load_model("resnet18", images(32, 32, {{"memory_format", ""}}));
        }) == "2: model.options.memory_format = \"\": expected \"contiguous\" or \"channels_last\"");
  CHECK(error_of([] {
          load_model("resnet18", images(32, 32, {{"pool", "no"}}));
        }) ==
        "2: model.options.pool = \"no\": model \"resnet18\" has no such option; expected \"stem\" or "
        "\"memory_format\"");
}

TEST_CASE("resnet18 refuses a batch of images with a shape other than its own") {
  const auto model = load_model("resnet18", images(32, 32));
  CHECK_THROWS_WITH_AS(
      model->forward(torch::zeros({2, 3, 64, 64})),
      "resnet18 was made for samples of the shape [3, 32, 32], and got a batch of the shape [2, 3, 64, 64]",
      std::invalid_argument);
}
