// An upper bound of what a change can gain.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/figures.hpp"

namespace ddprun::compare {

// The part of the step that a change of these keys can make faster, and a name for such a change.
struct Lever {
  double Split::*part;
  std::string name;  // "a faster backend"
};
// comm.* and keys that only affect gradient exchange: exposed communication. data.*: data wait. optimizer.*: the
// optimizer. Keys that affect several parts or none (strategy.kind, model.*): exposed communication, which is where
// strategies differ.
Lever lever_of(const std::vector<std::string>& keys_that_differ);

// One sentence with the ceiling. If the change affects a share p of the step, it makes the step at most 1 / (1 - p)
// times as fast (Amdahl 1967). "62 % data wait, 3 % exposed communication: a faster backend gains at most 3 %."
std::string ceiling_of(const Split& split, const Lever& lever);

}  // namespace ddprun::compare
