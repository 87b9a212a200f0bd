// For weights_parity.py: `model_weights NAME SEED CLASSES OUT EXTENT... [KEY=VALUE...]` makes the model for samples of
// that shape and writes its initial parameters as a checkpoint.
#include <torch/torch.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "models/load_model.hpp"

using namespace ddprun;

namespace {

void write_weights(Model& model, const std::string& path) {
  std::vector<checkpoint::TensorView> views;
  for (const auto& parameter : model.module().named_parameters()) {
    const torch::Tensor& tensor = parameter.value();
    TORCH_CHECK(tensor.is_contiguous() && tensor.scalar_type() == torch::kFloat32);
    views.push_back({parameter.key(), "F32", tensor.sizes().vec(), tensor.data_ptr(), tensor.nbytes()});
  }
  checkpoint::write_safetensors(path, views, {});
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    ModelContext context;
    context.classes = std::stoll(words.at(2));
    for (size_t i = 4; i < words.size(); ++i) {
      const size_t equals = words[i].find('=');
      if (equals == std::string::npos) {
        context.input_shape.push_back(std::stoll(words[i]));
      } else {
        context.options[words[i].substr(0, equals)] = words[i].substr(equals + 1);
      }
    }
    torch::manual_seed(std::stoull(words.at(1)));
    write_weights(*testing::load_model(words.at(0), context), words.at(3));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
