#include "support/torch_test.hpp"

#include "checkpoint/folder.hpp"
#include "support/error_of.hpp"
#include "support/text.hpp"
#include "testing/temp_dir.hpp"
#include "train/optim/fused.hpp"
#include "train/optim/optimizers.hpp"
#include "train/small_models.hpp"
#include "train/tensor/weights.hpp"

namespace ddprun::train {
namespace {

namespace optim = torch::optim;
using Make = std::function<std::unique_ptr<optim::Optimizer>(std::vector<torch::Tensor>)>;

void step(TwoLayers& model, optim::Optimizer& optimizer, int number) {
  forget_gradients(model);
  torch::manual_seed(static_cast<uint64_t>(number));
  loss_of(model, torch::randn({5, 4})).backward();
  optimizer.step();
}

checkpoint::File saved(optim::Optimizer& optimizer, const std::vector<NamedTensor>& parameters,
                       const testing::TempDir& dir) {
  FileTensors tensors;
  tensors.add(optimizer_state(optimizer, parameters), "optimizer.");
  const std::string path = dir.path() / "state.safetensors";
  checkpoint::write_safetensors(path, tensors.views(), {});
  return checkpoint::read_safetensors(path);
}

std::vector<torch::Tensor> weights(const TwoLayers& model) {
  std::vector<torch::Tensor> copies;
  for (const auto& parameter : model.parameters()) copies.push_back(parameter.detach().clone());
  return copies;
}

TEST_CASE("an optimizer continues bit for bit after its state was saved and loaded") {
  const std::vector<std::pair<const char*, Make>> all = {
      {"sgd", [](auto p) { return fused_sgd(p, optim::SGDOptions(0.1).momentum(0.9)); }},
      {"sgd of LibTorch", [](auto p) { return std::make_unique<optim::SGD>(p, optim::SGDOptions(0.1).momentum(0.9)); }},
      {"sgd without momentum", [](auto p) { return fused_sgd(p, optim::SGDOptions(0.1)); }},
      {"adam", [](auto p) { return fused_adam(p, optim::AdamOptions(0.1)); }},
      {"adam of LibTorch", [](auto p) { return std::make_unique<optim::Adam>(p, optim::AdamOptions(0.1)); }},
      {"adamw", [](auto p) { return fused_adamw(p, optim::AdamWOptions(0.1)); }}};
  for (const auto& [name, make] : all) {
    CAPTURE(name);
    torch::manual_seed(1);
    TwoLayers model;
    const auto optimizer = make(model.parameters());
    const auto parameters = trainable_parameters(model);
    CHECK(optimizer_state(*optimizer, parameters).empty());  // before the first step
    for (int i = 0; i < 3; ++i) step(model, *optimizer, i);
    const testing::TempDir dir;
    const auto file = saved(*optimizer, parameters, dir);
    const auto at_three = weights(model);
    for (int i = 3; i < 6; ++i) step(model, *optimizer, i);
    const auto expected = weights(model);

    {
      const torch::NoGradGuard no_grad;
      for (std::size_t i = 0; i < at_three.size(); ++i) model.parameters()[i].copy_(at_three[i]);
    }
    const auto fresh = make(model.parameters());
    load_optimizer_state(*fresh, parameters, file, "optimizer.");
    for (int i = 3; i < 6; ++i) step(model, *fresh, i);
    const auto got = weights(model);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(torch::equal(got[i], expected[i]));
  }
}

TEST_CASE("a state with other shapes or a missing part is refused, and the tensor named") {
  TwoLayers model;
  const auto parameters = trainable_parameters(model);
  const auto optimizer = fused_adam(model.parameters(), optim::AdamOptions(0.1));
  step(model, *optimizer, 0);
  const testing::TempDir dir;
  checkpoint::File file = saved(*optimizer, parameters, dir);
  const auto refused = [&](const checkpoint::File& damaged) {
    return testing::error_of([&] { load_optimizer_state(*optimizer, parameters, damaged, "optimizer."); });
  };
  checkpoint::File missing = file;
  std::erase_if(missing.tensors, [](const auto& tensor) { return tensor.name == "optimizer.fc1.weight.exp_avg_sq"; });
  CHECK(testing::contains(refused(missing), "has no tensor \"optimizer.fc1.weight.exp_avg_sq\""));
  for (auto& tensor : file.tensors) {
    if (tensor.name == "optimizer.fc2.bias.exp_avg") tensor.shape = {1, 3};
  }
  CHECK(testing::contains(refused(file), "\"optimizer.fc2.bias.exp_avg\" is F32 [1, 3], and the model needs F32 [3]"));
}

}  // namespace
}  // namespace ddprun::train
