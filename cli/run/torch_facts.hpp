// Functions of LibTorch that the command needs, without including its headers.
#pragma once

#include <exception>
#include <string>

namespace ddprun::run {

// The LibTorch version of this build.
std::string torch_version();

// The message of any exception, without LibTorch's backtrace.
std::string error_message(const std::exception& error);

}  // namespace ddprun::run
