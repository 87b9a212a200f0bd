// What a call throws, as one text to compare: "3: comm plugin ...: no entry point".
#pragma once

#include <string>

#include "ddprun/error.hpp"

namespace ddprun::testing {

// The exit code and message of the ddprun::Error that function throws; "no error" if none.
template <typename Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + ": " + error.what();
  }
  return "no error";
}

}  // namespace ddprun::testing
