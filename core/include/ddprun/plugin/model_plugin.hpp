// ddprun/plugin/model_plugin.hpp: all that a model plugin includes. model_entry.h has the ABI boundary below it.
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ddprun/plugin/model_entry.h"
#include "ddprun/plugin/options.hpp"

namespace ddprun {

// What a model is made from. Options are `model.options` as text; ModelOptions reads them.
struct ModelContext {
  ModelContext() = default;
  ModelContext(std::map<std::string, std::string> options, std::vector<int64_t> input_shape, int64_t classes)
      : options(std::move(options)), input_shape(std::move(input_shape)), classes(classes) {}

  uint64_t struct_size = sizeof(ModelContext);  // set by the host; later fields are added at the end
  std::map<std::string, std::string> options;
  std::vector<int64_t> input_shape;                 // of one sample, from the data set: {1, 28, 28}
  int64_t classes = 0;                              // of the data set; 0 for regression
  torch::ScalarType input_dtype = torch::kFloat32;  // or torch::kInt64
  int64_t vocabulary = 0;  // of the data set: tokens in the input are from 0 to below this; 0: no tokens
};

// A network with what belongs to it. Made after torch::manual_seed, so that the same seed gives the same initial
// weights as the same module in Python. One thread calls it at a time; dp makes one per replica. Functions may throw;
// the exception ends the training.
class Model {
 public:
  virtual ~Model() = default;
  // Owns parameters and buffers, named as PyTorch's state_dict names them.
  virtual torch::nn::Module& module() = 0;
  // input: [batch, input_shape...], float32 or int64 as the data set has it; returns the output that loss and correct
  // take.
  virtual torch::Tensor forward(const torch::Tensor& input) = 0;
  // Mean over the batch, a scalar with gradient. target: [batch, target_shape...].
  virtual torch::Tensor loss(const torch::Tensor& output, const torch::Tensor& target) = 0;
  // How many samples of the batch are right (int64 scalar); undefined tensor where accuracy has no meaning.
  virtual torch::Tensor correct(const torch::Tensor& output, const torch::Tensor& target) = 0;
  // Values worth printing at the end ("weight" = 2.0 for linear); empty for most.
  virtual std::vector<std::pair<std::string, double>> learned() { return {}; }
};

namespace sdk {

template <class T>
void* create_model(const void* context, char* error, uint64_t error_size) {
  const char* what = "unknown exception";
  std::string text;
  try {
    const auto& given = *static_cast<const ModelContext*>(context);
    if (given.struct_size < sizeof(ModelContext)) throw std::runtime_error("built for a newer ddprun than this one");
    return static_cast<Model*>(new T(given));
  } catch (const c10::Error& caught) {
    text = caught.what_without_backtrace();
    what = text.c_str();
  } catch (const std::exception& caught) {
    text = caught.what();
    what = text.c_str();
  } catch (...) {
  }
  if (error_size > 0) {
    const auto length = std::min<uint64_t>(std::strlen(what), error_size - 1);
    std::memcpy(error, what, length);
    error[length] = '\0';
  }
  return nullptr;
}

inline void destroy_model(void* model) {
  delete static_cast<Model*>(model);
}

template <class T>
constexpr ddprun_model_plugin model_table(const char* name, const char* version, OptionSpecs options = kNoOptions) {
  return {sizeof(ddprun_model_plugin),
          DDPRUN_MODEL_ABI,
          name,
          version,
          TORCH_VERSION,
          _GLIBCXX_USE_CXX11_ABI,
          0,
          &create_model<T>,
          &destroy_model,
          options.data(),
          static_cast<uint32_t>(options.size()),
          0};
}

}  // namespace sdk
}  // namespace ddprun

// Defines the plugin's one exported symbol. T derives from ddprun::Model and is made from a const ModelContext&. The
// last argument is an array of ddprun_option_spec, for a model that takes options (options.hpp).
#define DDPRUN_MODEL_PLUGIN(T, plugin_name, plugin_version, ...)          \
  DDPRUN_PLUGIN_EXPORT const ddprun_model_plugin ddprun_model_plugin_v1 = \
      ::ddprun::sdk::model_table<T>(plugin_name, plugin_version __VA_OPT__(, ) __VA_ARGS__)
