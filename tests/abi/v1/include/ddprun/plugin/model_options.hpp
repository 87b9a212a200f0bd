// ddprun/plugin/model_options.hpp: reads `model.options`, as the model declares them.
#pragma once

#include <map>
#include <stdexcept>
#include <string>

#include "ddprun/plugin/options.hpp"

namespace ddprun {

class ModelOptions : public Options {
 public:
  // `model` is the plugin's name. Throws std::invalid_argument for the first option that is not as declared; the line
  // begins with the option's full name, which the host looks for.
  ModelOptions(const std::map<std::string, std::string>& options, const std::string& model, OptionSpecs specs)
      : Options(checked(options, model, specs)) {}

 private:
  static Options checked(const std::map<std::string, std::string>& options, const std::string& model,
                         OptionSpecs specs) {
    try {
      return {"model \"" + model + '"', specs, options};
    } catch (const InvalidOption& error) {
      throw std::invalid_argument("model.options." + error.name() + " = \"" + options.at(error.name()) +
                                  "\": " + error.what());
    }
  }
};

}  // namespace ddprun
