// What the command needs of LibTorch, without a header of it.
#pragma once

#include <exception>
#include <string>

namespace ddprun::run {

// The version of LibTorch that this build was made with.
std::string torch_version();

// The message of any exception; of LibTorch's own ones without their backtrace.
std::string error_message(const std::exception& error);

}  // namespace ddprun::run
