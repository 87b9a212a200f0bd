#include <stdexcept>
#include <utility>

#include "ddprun/plugin/dataset_options.hpp"
#include "ddprun/plugin/model_options.hpp"

namespace ddprun {
namespace {

Options checked_dataset_options(const std::string& name, const DatasetContext& context, OptionSpecs specs) {
  try {
    return {"data set \"" + name + '"', specs, context.options};
  } catch (const InvalidOption& error) {
    DatasetOptions::refuse(error.name(), error.what());
  }
}

Options checked_model_options(const std::map<std::string, std::string>& options, const std::string& model,
                              OptionSpecs specs) {
  try {
    return {"model \"" + model + '"', specs, options};
  } catch (const InvalidOption& error) {
    throw std::invalid_argument("model.options." + error.name() + " = \"" + options.at(error.name()) +
                                "\": " + error.what());
  }
}

}  // namespace

DatasetOptions::DatasetOptions(std::string name, const DatasetContext& context, OptionSpecs specs)
    : Options(checked_dataset_options(name, context, specs)),
      name_(std::move(name)),
      root_(context.root),
      seed_(context.seed) {}

uint64_t DatasetOptions::seed() const {
  return given("seed") ? static_cast<uint64_t>(integer("seed")) : seed_;
}

void DatasetOptions::refuse_root() const {
  if (root_.empty()) return;
  throw InvalidDataset("root", "data set \"" + name_ + "\" is computed and reads no files; leave root out");
}

void DatasetOptions::refuse(const std::string& key, const std::string& reason) {
  throw InvalidDataset("options." + key, reason);
}

ModelOptions::ModelOptions(const std::map<std::string, std::string>& options, const std::string& model,
                           OptionSpecs specs)
    : Options(checked_model_options(options, model, specs)) {}

}  // namespace ddprun
