// For logits_parity.py: `model_logits NAME CLASSES WEIGHTS BATCH OUT EXTENT... [KEY=VALUE...]` loads the weights and
// scores the batch ("input", "target"); trains for a step and scores it again. It writes the scores ("loaded",
// "trained") as scores.safetensors, and a checkpoint of the trained model, into the folder OUT.
#include <torch/torch.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "checkpoint/folder.hpp"
#include "checkpoint/safetensors.hpp"
#include "plugins/models/made_from_words.hpp"
#include "train/tensor/tensor_buffer.hpp"
#include "train/tensor/weights.hpp"

using namespace ddprun;

namespace {

torch::Tensor tensor_of(const checkpoint::File& file, const std::string& name, torch::ScalarType type) {
  const checkpoint::Tensor& tensor = file.at(name);
  return torch::from_blob(const_cast<std::byte*>(tensor.data.data()), tensor.shape, type).clone();
}

torch::Tensor score(Model& model, const torch::Tensor& input) {
  const torch::NoGradGuard no_grad;
  model.module().eval();
  return model.forward(input).contiguous();
}

void train_a_step(Model& model, const torch::Tensor& input, const torch::Tensor& target) {
  model.module().train();
  model.loss(model.forward(input), target).backward();
  torch::optim::SGD(model.module().parameters(), 0.01).step();
}

void run(const std::vector<std::string>& words) {
  torch::set_num_threads(1);
  const auto model = testing::made_from_words(words.at(0), words.at(1), words, 5);
  const std::string& out = words.at(4);
  train::load_weights(model->module(), words.at(2));
  const checkpoint::File batch = checkpoint::read_safetensors(words.at(3), false);
  const torch::Tensor input = tensor_of(batch, "input", torch::kFloat32);
  const torch::Tensor loaded = score(*model, input);
  train_a_step(*model, input, tensor_of(batch, "target", torch::kInt64));
  checkpoint::CheckpointFolder folder(out, 1);
  train::save_weights(model->module(), folder, 1, 1, {});
  const torch::Tensor trained = score(*model, input);
  const auto view = [](const std::string& name, const torch::Tensor& scores) {
    return checkpoint::TensorView{name, "F32", scores.sizes().vec(), scores.data_ptr(), scores.nbytes()};
  };
  checkpoint::write_safetensors(out + "/scores.safetensors", {view("loaded", loaded), view("trained", trained)}, {});
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
