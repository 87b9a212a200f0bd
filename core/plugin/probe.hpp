// Finds out what loading a library does, before this process loads it.
#pragma once

#include <chrono>
#include <functional>

#include "plugin/search.hpp"

namespace ddprun::plugin {

// Throws Error(plugin) if the file ends before its segments do: reading the rest of a truncated library is SIGBUS.
// Everything else that is wrong with the file is reported by the dynamic loader.
void require_complete(const File& file);

// Calls load() in a child process, without its output. An Error that load() throws is ignored. Throws Error(plugin) if
// the child crashes, exits, throws something else, or works longer than `limit`. One thread at a time.
void probe(const File& file, const std::function<void()>& load, std::chrono::seconds limit = std::chrono::seconds(60));

}  // namespace ddprun::plugin
