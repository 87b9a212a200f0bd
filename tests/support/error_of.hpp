// The exception of a call as text for comparison: "3: comm plugin ...: no entry point".
#pragma once

#include <string>

#include "ddprun/error.hpp"

namespace ddprun::testing {

// Exit code and message of the ddprun::Error that `function` throws; "no error" if it throws none.
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
