// doctest for tests that use Torch: include this instead of <doctest/doctest.h>, before any other header. Torch's
// headers define CHECK too, as a macro that ends the program; included after doctest, they would silently replace
// doctest's.
#pragma once

#ifdef DOCTEST_LIBRARY_INCLUDED
#error "include support/torch_test.hpp first, and not <doctest/doctest.h>"
#endif

#include <torch/torch.h>

#undef CHECK
#undef CHECK_EQ
#undef CHECK_GE
#undef CHECK_GT
#undef CHECK_LE
#undef CHECK_LT
#undef CHECK_NE

#include <doctest/doctest.h>

#include <chrono>

namespace ddprun {

// Of a job of ranks, and of one collective.
inline constexpr auto kDeadline = std::chrono::seconds(60), kTimeout = std::chrono::seconds(20);

}  // namespace ddprun

namespace ddprun::testing {

// Tests fork ranks. A child does not inherit Torch's pool of threads, but would wait for it.
inline const bool torch_has_one_thread = (torch::set_num_threads(1), true);

}  // namespace ddprun::testing
