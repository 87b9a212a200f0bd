// Arguments of the form key=value.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ddprun/error.hpp"

namespace ddprun::console {

// `option` is the name for errors: "--option". Throws Error(usage).
inline std::map<std::string, std::string> key_values(const std::string& option, const std::vector<std::string>& texts) {
  std::map<std::string, std::string> values;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(ExitCode::usage, option + " " + text + ": expected key=value");
    }
    values[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return values;
}

}  // namespace ddprun::console
