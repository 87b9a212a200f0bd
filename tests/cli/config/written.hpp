// Loads experiments from text, for the tests of this module.
#pragma once

#include <string>
#include <vector>

#include "cli/config/experiment.hpp"
#include "ddprun/error.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::testing {

// The keys that every experiment needs. Tests that check line numbers append them.
inline const std::string required = "\n[model]\nname = \"linear\"\n[data]\nname = \"linear\"\n";

inline config::Loaded load_text(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const TempDir dir;
  return config::load(dir.write("exp.toml", text), overrides);
}

// The error lines of load(), with exp.toml as the file name; "" if it loads.
inline std::string errors_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const TempDir dir;
  const std::string path = dir.write("exp.toml", text);
  try {
    config::load(path, overrides);
    return "";
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) return "wrong exit code";
    std::string message = error.what();
    for (auto at = message.find(path); at != std::string::npos; at = message.find(path)) {
      message.replace(at, path.size(), "exp.toml");
    }
    return message;
  }
}

}  // namespace ddprun::testing
