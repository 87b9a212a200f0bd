#include "tools/compare/sweep.hpp"

#include "app/compare_options.hpp"

namespace ddprun::app {

ExitCode sweep(const Arguments& arguments) {
  return compare::sweep(completed(arguments.sweep, arguments));
}

}  // namespace ddprun::app
