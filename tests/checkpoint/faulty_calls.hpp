// Makes one system call of a commit fail. The linker's --wrap redirects write, fsync, close and rename to this file.
#pragma once

#include <string>
#include <vector>

namespace ddprun::testing {

enum class Fault { none, no_space, io_error, short_write, kill };

// Counts the calls from now on, and injects the fault into call number `at` (from 0). short_write: a write writes half
// of its bytes and returns their number; other calls succeed. kill: half of a write, then SIGKILL.
void inject(Fault fault, int at);
// Stops counting; returns the names of the calls since inject().
std::vector<std::string> injected();

}  // namespace ddprun::testing
