#include "train/loop/model_loader.hpp"

#include <array>
#include <utility>

#include "ddprun/error.hpp"
#include "plugin/options.hpp"
#include "train/device/cuda.hpp"

namespace ddprun::train {

std::string torch_version() {
  return TORCH_VERSION;
}
int cxx11_abi() {
  return _GLIBCXX_USE_CXX11_ABI;
}

ModelPtr make_model(const plugin::ModelPlugin& plugin, const ModelContext& context) {
  for (const OptionError& wrong : plugin::option_errors(*plugin.table, context.options)) {
    throw Error(ExitCode::usage,
                "model.options." + wrong.name + " = \"" + context.options.at(wrong.name) + "\": " + wrong.reason);
  }
  std::array<char, 1024> error{};
  void* model = plugin.table->create(&context, error.data(), error.size());
  if (model == nullptr) {
    if (const std::string refused = refused_tensor(error.data()); !refused.empty()) {
      throw Error(ExitCode::failure, refused + "; use a smaller model, or more memory");
    }
    throw Error(ExitCode::usage, error.data());
  }
  return {static_cast<Model*>(model), plugin.table->destroy};
}

ModelContext model_context(std::map<std::string, std::string> options, const Dataset& data) {
  ModelContext context(std::move(options), data.input().shape, static_cast<int64_t>(data.classes().size()));
  if (data.input().type == ElementType::int64) context.input_dtype = torch::kInt64;
  context.vocabulary = data.vocabulary();
  return context;
}

}  // namespace ddprun::train
