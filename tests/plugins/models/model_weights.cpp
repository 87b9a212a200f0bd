// For weights_parity.py: `model_weights NAME SEED CLASSES OUT EXTENT... [KEY=VALUE...]` creates the model for samples
// of that shape, writes its initial state as a checkpoint, and prints the names of its parameters in their order.
#include <torch/torch.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "plugins/models/made_from_words.hpp"
#include "train/tensor/parameters.hpp"
#include "train/tensor/tensor_buffer.hpp"

using namespace ddprun;

namespace {

void write_weights(Model& model, const std::string& path) {
  std::vector<checkpoint::TensorView> views;
  for (const auto& [name, tensor] : train::state(model.module())) {
    TORCH_CHECK(tensor.is_contiguous());
    views.push_back({name, train::safetensors_dtype(tensor), tensor.sizes().vec(), tensor.data_ptr(), tensor.nbytes()});
  }
  checkpoint::write_safetensors(path, views, {});
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    torch::manual_seed(std::stoull(words.at(1)));
    const auto model = testing::made_from_words(words.at(0), words.at(2), words, 4);
    write_weights(*model, words.at(3));
    for (const std::string& name : model->module().named_parameters().keys()) std::puts(name.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
