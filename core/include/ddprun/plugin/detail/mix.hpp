// ddprun/plugin/detail/mix.hpp: random numbers as a pure function of what they are for, the same on every machine.
#pragma once

#include <cstdint>

namespace ddprun {

// The finalizer of SplitMix64 (Steele, Lea and Flood 2014): neighbouring inputs give unrelated outputs.
inline uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

namespace detail {

// A whole number in [0, count) from 64 random bits, count at most 2^31: their upper half scaled down, which favours no
// number by more than count / 2^32.
inline int64_t scaled(uint64_t bits, int64_t count) {
  return static_cast<int64_t>((bits >> 32) * static_cast<uint64_t>(count) >> 32);
}

}  // namespace detail
}  // namespace ddprun
