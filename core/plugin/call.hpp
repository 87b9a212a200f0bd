// Calls into a plugin, for the rooms that hold its table.
#pragma once

#include <exception>
#include <string>

#include "base/error.hpp"

namespace ddprun::plugin {

// Calls function, a call into the plugin, and returns what it returns. What it throws must not: that becomes
// Error(plugin), with `where` in front.
template <typename Function>
auto call_plugin(const std::string& where, Function function) {
  constexpr const char* kRule = "; a plugin must return a status instead";
  try {
    return function();
  } catch (const std::exception& thrown) {
    throw Error(ExitCode::plugin, where + "the plugin threw \"" + thrown.what() + '"' + kRule);
  } catch (...) {
    throw Error(ExitCode::plugin, where + "the plugin threw something unknown" + kRule);
  }
}

}  // namespace ddprun::plugin
