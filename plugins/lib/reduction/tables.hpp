// The same functions, compiled for several instruction sets. reduce.cpp uses the first table that this processor runs;
// tests compare all of them.
#pragma once

#include <span>

#include "ddprun/plugin/comm_plugin.h"
#include "reduction/reduce.hpp"

namespace ddprun::reduction {

using ReduceAll = void (*)(void* const* to, int to_count, const void* const* from, int from_count, std::size_t count);
using Divide = void (*)(void* values, std::size_t count, int ranks);

// The functions of one dtype.
struct Functions {
  Reduce reduce[DDPRUN_OP_COUNT];
  ReduceAll reduce_all[DDPRUN_OP_COUNT];
  Divide divide;
};

struct Table {
  const char* name;  // of the instruction set
  Functions of_dtype[DDPRUN_DTYPE_COUNT];
};

extern const Table kPlain;   // the compiler's default instructions, in vectors of 16 bytes
extern const Table kAvx2;    // x86-64 only, needs AVX2 and F16C
extern const Table kAvx512;  // x86-64 only, needs AVX-512 F, BW, DQ and VL

// The tables that this processor runs, fastest first; never empty.
std::span<const Table* const> usable_tables() noexcept;

}  // namespace ddprun::reduction
