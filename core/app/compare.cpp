#include "tools/compare/compare.hpp"

#include "app/compare_options.hpp"

namespace ddprun::app {

ExitCode compare(const Arguments& arguments) {
  return compare::run(completed(arguments.compare, arguments));
}

}  // namespace ddprun::app
