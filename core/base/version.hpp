// ddprun's own version, "0.1.0": project() in CMakeLists.txt states it.
#pragma once

namespace ddprun {

const char* version();

}  // namespace ddprun
