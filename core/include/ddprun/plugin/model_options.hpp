// ddprun/plugin/model_options.hpp: reads `model.options`, as the model declares them.
#pragma once

#include <map>
#include <string>

#include "ddprun/plugin/options.hpp"

namespace ddprun {

class ModelOptions : public Options {
 public:
  // `model` is the plugin's name. Throws std::invalid_argument for the first option that is not as declared; the line
  // begins with the option's full name, which the host looks for.
  ModelOptions(const std::map<std::string, std::string>& options, const std::string& model, OptionSpecs specs);
};

}  // namespace ddprun
