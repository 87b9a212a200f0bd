// Calls into a plugin, for the modules that hold its function table.
#pragma once

#include <exception>
#include <string>

#include "ddprun/error.hpp"

namespace ddprun::plugin {

inline const std::string& text_of(const std::string& where) {
  return where;
}
template <typename Where>
std::string text_of(const Where& where) {
  return where();
}

// Calls `function`, a call into the plugin, and returns its result. A plugin must not throw; an exception becomes
// Error(plugin) with `where` in front. `where` is a text or, for frequent calls, a function that returns one.
template <typename Where, typename Function>
auto call_plugin(const Where& where, Function function) {
  constexpr const char* kRule = "; a plugin must return a status instead";
  try {
    return function();
  } catch (const std::exception& thrown) {
    throw Error(ExitCode::plugin, text_of(where) + "the plugin threw \"" + thrown.what() + '"' + kRule);
  } catch (...) {
    throw Error(ExitCode::plugin, text_of(where) + "the plugin threw something unknown" + kRule);
  }
}

}  // namespace ddprun::plugin
