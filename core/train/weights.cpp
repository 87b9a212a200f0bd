#include "train/weights.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "base/error.hpp"
#include "checkpoint/safetensors.hpp"
#include "ddprun/model_shape.hpp"
#include "train/parameters.hpp"
#include "train/tensor_buffer.hpp"

namespace ddprun::train {
namespace {

constexpr std::size_t kMostTold = 4;

// `F32 [64, 3, 7, 7]`
std::string kind(const std::string& dtype, const std::vector<int64_t>& shape) {
  return dtype + " " + shape_text(shape);
}

// What keeps the file from being the module's state, a phrase each.
std::vector<std::string> differences(const std::vector<NamedTensor>& wanted, const checkpoint::File& file) {
  std::map<std::string, const checkpoint::Tensor*> rest;
  for (const checkpoint::Tensor& tensor : file.tensors) rest[tensor.name] = &tensor;
  std::vector<std::string> found;
  for (const NamedTensor& item : wanted) {
    const auto here = rest.find(item.name);
    if (here == rest.end()) {
      found.push_back("\"" + item.name + "\" is missing");
      continue;
    }
    const std::string want = kind(safetensors_dtype(item.tensor), item.tensor.sizes().vec());
    const std::string has = kind(here->second->dtype, here->second->shape);
    if (has != want) found.push_back("\"" + item.name + "\" is " + has + ", and the model's is " + want);
    rest.erase(here);
  }
  for (const auto& [name, tensor] : rest) found.push_back(checkpoint::quoted_name(name) + " is not the model's");
  return found;
}

std::string told(const std::vector<std::string>& differences) {
  std::string text;
  const std::size_t count = std::min(differences.size(), kMostTold);
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : "; ") + differences[i];
  if (count < differences.size()) text += "; and " + std::to_string(differences.size() - count) + " more";
  return text;
}

}  // namespace

void load_weights(const torch::nn::Module& module, const std::string& path) {
  const torch::NoGradGuard no_grad;
  const std::vector<NamedTensor> wanted = state(module);
  checkpoint::File file = checkpoint::read_safetensors(path, false);
  if (const auto found = differences(wanted, file); !found.empty()) {
    throw Error(ExitCode::usage, path + ": these are not the weights of this model: " + told(found));
  }
  std::map<std::string, checkpoint::Tensor*> by_name;
  for (checkpoint::Tensor& tensor : file.tensors) by_name[tensor.name] = &tensor;
  for (const NamedTensor& item : wanted) {
    auto& bytes = by_name.at(item.name)->data;
    torch::Tensor(item.tensor).copy_(torch::from_blob(bytes.data(), item.tensor.sizes(), item.tensor.dtype()));
  }
}

}  // namespace ddprun::train
