#include "support/paths.hpp"

namespace ddprun::testing {

std::string source_dir() {
  return DDPRUN_SOURCE_DIR;
}
std::string build_dir() {
  return DDPRUN_BINARY_DIR;
}

}  // namespace ddprun::testing
