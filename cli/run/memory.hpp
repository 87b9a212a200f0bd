// Settings of malloc for a rank.
#pragma once

namespace ddprun::run {

// Makes malloc keep freed memory for the next step, which allocates the same sizes again. By default glibc returns
// large blocks and the free end of the heap to the kernel, which then has to find and clear the same pages in every
// step. MALLOC_MMAP_THRESHOLD_ and MALLOC_TRIM_THRESHOLD_ in the environment have precedence. Call it early, before
// there are other threads.
void keep_freed_memory();

}  // namespace ddprun::run
