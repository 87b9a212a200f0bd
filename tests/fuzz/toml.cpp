// A configuration: TOML text to an experiment.
#include "fuzz/target.hpp"

#include <algorithm>

#include "cli/config/experiment.hpp"
#include "ddprun/error.hpp"

using namespace ddprun;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  static const std::string path = "exp.toml";
  std::string resolved;
  try {
    const auto loaded = config::load_text({reinterpret_cast<const char*>(data), size}, path, {});
    config::unused_keys(loaded.experiment, loaded.sources);
    resolved = config::to_toml(loaded.experiment);
  } catch (const Error& error) {
    fuzz::require(error.code() == ExitCode::usage, "an error in a configuration is a user's error", error.what());
    // One line for each error.
    const std::string_view lines = error.what();
    for (std::size_t begin = 0, end = 0; begin < lines.size(); begin = end + 1) {
      end = std::min(lines.find('\n', begin), lines.size());
      fuzz::require_message(lines.substr(begin, end - begin), path + ":");
    }
    return 0;
  }
  fuzz::require(config::to_toml(config::load_text(resolved, path, {}).experiment) == resolved,
                "the resolved configuration gives the same experiment", resolved);
  return 0;
}
