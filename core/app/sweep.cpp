#include "compare/sweep.hpp"

#include <filesystem>

#include "app/commands.hpp"

namespace ddprun::app {

ExitCode sweep(const Arguments& arguments) {
  compare::SweepRequest request = arguments.sweep;
  request.overrides = arguments.overrides;
  request.running.program = std::filesystem::read_symlink("/proc/self/exe");
  request.running.plugin_paths = arguments.plugin_paths;
  return compare::sweep(request);
}

}  // namespace ddprun::app
