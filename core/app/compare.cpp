#include "compare/compare.hpp"

#include <filesystem>

#include "app/commands.hpp"

namespace ddprun::app {

ExitCode compare(const Arguments& arguments) {
  compare::Request request = arguments.compare;
  request.overrides = arguments.overrides;
  request.running.program = std::filesystem::read_symlink("/proc/self/exe");
  request.running.plugin_paths = arguments.plugin_paths;
  return compare::run(request);
}

}  // namespace ddprun::app
