#include "train/tensor/weights.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/model_shape.hpp"
#include "train/tensor/parameters.hpp"
#include "train/tensor/tensor_buffer.hpp"

namespace ddprun::train {
namespace {

// `F32 [64, 3, 7, 7]`
std::string kind_of(const checkpoint::Tensor& tensor) {
  return tensor.dtype + " " + shape_text(tensor.shape);
}
std::string kind_of(const torch::Tensor& tensor) {
  return safetensors_dtype(tensor) + " " + shape_text(tensor.sizes().vec());
}

// from_blob requires a non-const pointer; the memory is only read.
torch::Tensor view_of(const checkpoint::Tensor& tensor, torch::ScalarType type) {
  return torch::from_blob(const_cast<std::byte*>(tensor.data.data()), tensor.shape, type);
}

}  // namespace

void FileTensors::add(const std::string& name, const torch::Tensor& tensor) {
  kept_.push_back(tensor.detach().cpu().contiguous());
  const torch::Tensor& kept = kept_.back();
  views_.push_back({name, safetensors_dtype(kept), kept.sizes().vec(), kept.data_ptr(), kept.nbytes()});
}

torch::Tensor tensor_like(const torch::Tensor& like, const checkpoint::File& file, const checkpoint::Tensor& tensor) {
  const std::string wanted = kind_of(like), is = kind_of(tensor);
  if (is != wanted) {
    throw Error(ExitCode::usage, file.path + ": tensor " + checkpoint::quoted_name(tensor.name) + " is " + is +
                                     ", and the model needs " + wanted);
  }
  return torch::empty_like(like).copy_(view_of(tensor, like.scalar_type()));
}

namespace {

constexpr std::size_t kMostNamed = 2;                // per kind of difference
const std::string kBatches = "num_batches_tracked";  // of BatchNorm
const std::string kWrapped = "module.";              // the prefix that DistributedDataParallel adds to each name

// The differences between the file and the module's state, one phrase each.
struct Differences {
  std::vector<std::string> missing, other, foreign;
};

bool may_be_missing(const std::string& name) {
  return name == kBatches || name.ends_with("." + kBatches);
}

Differences differences(const std::vector<NamedTensor>& wanted, const checkpoint::File& file,
                        const std::string& others) {
  std::map<std::string, const checkpoint::Tensor*> rest;
  for (const checkpoint::Tensor& tensor : file.tensors) rest[tensor.name] = &tensor;
  Differences found;
  for (const NamedTensor& item : wanted) {
    const auto here = rest.find(item.name);
    if (here == rest.end()) {
      if (may_be_missing(item.name)) continue;
      found.missing.push_back("\"" + item.name + "\" is missing");
      continue;
    }
    const std::string want = kind_of(item.tensor), has = kind_of(*here->second);
    if (has != want) found.other.push_back("\"" + item.name + "\" is " + has + ", and the model's is " + want);
    rest.erase(here);
  }
  for (const auto& [name, tensor] : rest) {
    if (!others.empty() && name.starts_with(others)) continue;
    found.foreign.push_back(checkpoint::quoted_name(name) + " is not the model's");
  }
  return found;
}

std::string describe(const Differences& differences) {
  std::string text;
  std::size_t left = 0;
  for (const auto* sort : {&differences.missing, &differences.other, &differences.foreign}) {
    const std::size_t count = std::min(sort->size(), kMostNamed);
    for (std::size_t i = 0; i < count; ++i) text += (text.empty() ? "" : "; ") + sort->at(i);
    left += sort->size() - count;
  }
  return left == 0 ? text : text + "; and " + std::to_string(left) + " more";
}

// Whether the names are the model's with the prefix of a wrapped module.
bool wrapped(const std::vector<NamedTensor>& wanted, const checkpoint::File& file) {
  std::set<std::string> names;
  for (const checkpoint::Tensor& tensor : file.tensors) names.insert(tensor.name);
  return std::all_of(wanted.begin(), wanted.end(), [&](const NamedTensor& item) {
    return may_be_missing(item.name) || names.contains(kWrapped + item.name);
  });
}

// With a non-finite value a network computes only NaN, and the error would blame the loss.
void refuse_infinite(const std::string& path, const std::string& name, const torch::Tensor& tensor) {
  if (!tensor.is_floating_point() || tensor.isfinite().all().item<bool>()) return;
  throw Error(ExitCode::usage, path + ": tensor \"" + name + "\" holds a value that is NaN or infinite");
}

// The tensor as the file has it: a view of the file's bytes, or 0 if it may be missing.
torch::Tensor value_in(const checkpoint::File& file, const NamedTensor& item) {
  const checkpoint::Tensor* const here = file.find(item.name);
  return here == nullptr ? torch::zeros_like(item.tensor, torch::kCPU) : view_of(*here, item.tensor.scalar_type());
}

}  // namespace

void require_weights(const torch::nn::Module& module, const checkpoint::File& file, const std::string& others) {
  const std::vector<NamedTensor> wanted = state(module);
  const std::string found = describe(differences(wanted, file, others));
  if (found.empty()) return;
  if (wrapped(wanted, file)) {
    throw Error(ExitCode::usage, file.path + ": every name begins with \"" + kWrapped +
                                     "\": these are the weights of a DistributedDataParallel; save model.module's "
                                     "state_dict instead");
  }
  throw Error(ExitCode::usage, file.path + ": these are not the weights of this model: " + found);
}

void copy_weights(const torch::nn::Module& module, const checkpoint::File& file) {
  const torch::NoGradGuard no_grad;
  for (const NamedTensor& item : state(module)) torch::Tensor(item.tensor).copy_(value_in(file, item));
}

checkpoint::Metadata load_weights(const torch::nn::Module& module, const std::string& path) {
  const checkpoint::File file = checkpoint::read_safetensors(path, false);
  require_weights(module, file);
  for (const NamedTensor& item : state(module)) refuse_infinite(path, item.name, value_in(file, item));
  copy_weights(module, file);
  return file.metadata;
}

std::string save_weights(const torch::nn::Module& module, checkpoint::CheckpointFolder& folder, int64_t step,
                         int64_t epoch, const checkpoint::Metadata& metadata) {
  FileTensors tensors;
  tensors.add(state(module));
  return folder.save(step, epoch, tensors.views(), metadata);
}

}  // namespace ddprun::train
