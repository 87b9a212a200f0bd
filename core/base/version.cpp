#include "base/version.hpp"

namespace ddprun {

const char* version() {
  return DDPRUN_VERSION;
}

}  // namespace ddprun
