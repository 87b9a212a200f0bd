// Functions of LibTorch that the command needs, without including its headers.
#pragma once

#include <string>

namespace ddprun::run {

// The LibTorch version of this build.
std::string torch_version();

}  // namespace ddprun::run
