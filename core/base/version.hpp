// ddprun's version, "0.1.0", from project() in CMakeLists.txt.
#pragma once

namespace ddprun {

const char* version();

}  // namespace ddprun
