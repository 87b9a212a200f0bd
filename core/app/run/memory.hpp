// How malloc keeps the memory of a rank.
#pragma once

namespace ddprun::run {

// Makes malloc keep what is freed, for the next step, which takes the same again. By default glibc gives large blocks
// and the free end of the heap back to the kernel, which then has to find and clear the same pages in every step.
// Whoever sets MALLOC_MMAP_THRESHOLD_ or MALLOC_TRIM_THRESHOLD_ in the environment is obeyed. Early, before other
// threads are there.
void keep_freed_memory();

}  // namespace ddprun::run
