// For the programs that this folder's Python scripts run: a model from command line arguments.
#pragma once

#include <string>
#include <vector>

#include "plugins/models/load_model.hpp"

namespace ddprun::testing {

// `words`: extents of the samples' shape ("3") and options ("stem=small"), from `first` on.
inline train::ModelPtr made_from_words(const std::string& name, const std::string& classes,
                                       const std::vector<std::string>& words, std::size_t first) {
  ModelContext context;
  context.classes = std::stoll(classes);
  for (std::size_t i = first; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (equals == std::string::npos) {
      context.input_shape.push_back(std::stoll(words[i]));
    } else {
      context.options[words[i].substr(0, equals)] = words[i].substr(equals + 1);
    }
  }
  return load_model(name, context);
}

}  // namespace ddprun::testing
