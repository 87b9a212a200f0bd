// Questions whose answer leaves traces in the process that asks: asked in one that ends with them.
#pragma once

#include <cstdint>
#include <functional>

namespace ddprun::launch {

// What `work` returns, called in a process of its own: what it loads, and the threads that it starts, are gone with it.
// Throws the Error that it throws; Error(failure) where the process cannot be started or dies. Call it while there is
// no other thread.
int64_t run_in_subprocess(const std::function<int64_t()>& work);

}  // namespace ddprun::launch
