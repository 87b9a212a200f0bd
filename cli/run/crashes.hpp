// What a rank says if it crashes: the stack, the plugin that was called, or the exception that nothing caught.
#pragma once

#include <functional>

#include "cli/run/group.hpp"
#include "launch/world.hpp"

namespace ddprun::run {

// From now on this process reports its crashes. Call it once, on the main thread, before other threads exist. `meeting`
// must live as long as the process.
void report_crashes(const launch::World& world, const Meeting& meeting);

// `say` is called after such a report. Call it at most once.
void after_crash(std::function<void()> say);

}  // namespace ddprun::run
