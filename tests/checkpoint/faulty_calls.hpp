// The system calls of a commit, one of which can be made to fail. The linker's --wrap sends write, fsync, close and
// rename through here.
#pragma once

#include <string>
#include <vector>

namespace ddprun::testing {

enum class Fault { none, no_space, io_error, short_write, kill };

// Counts from now on, and lets the call number `at` (from 0) fail. short_write: a write takes half of its bytes and
// reports so, which is no failure; other calls go through. kill: half of a write is done, then SIGKILL.
void inject(Fault fault, int at);
// Ends it, and names the calls that were made since inject().
std::vector<std::string> injected();

}  // namespace ddprun::testing
