// Runs a function in a child process, so that this process stays free of its side effects.
#pragma once

#include <cstdint>
#include <functional>

namespace ddprun::launch {

// Calls `work` in a child process and returns its result. The libraries that it loads and the threads that it starts
// end with the child. Throws the Error that `work` throws; Error(failure) if the child cannot be started or dies. Call
// it while there is only one thread.
int64_t run_in_subprocess(const std::function<int64_t()>& work);

}  // namespace ddprun::launch
