// What a call throws: code and text of a ddprun::Error, to be compared with what a user is to read.
#pragma once

#include <stdexcept>
#include <string>

#include "base/error.hpp"

namespace ddprun::testing {

// Any other exception passes through; none at all is a std::logic_error.
template <class Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  throw std::logic_error("expected a ddprun::Error, nothing was thrown");
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace ddprun::testing
