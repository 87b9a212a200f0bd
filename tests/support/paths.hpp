// The folders of this checkout and of its build. Only paths.cpp is compiled with them: ccache then serves the tests of
// any clone.
#pragma once

#include <string>

namespace ddprun::testing {

std::string source_dir();
std::string build_dir();

}  // namespace ddprun::testing
