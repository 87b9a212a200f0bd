// Why is it not faster?
#pragma once

#include <string>
#include <vector>

#include "tools/compare/figures.hpp"

namespace ddprun::compare {

// What a change of these keys can make faster: one part of the step, and what such a change is called.
struct Lever {
  double Split::*part;
  std::string name;  // "a faster backend"
};
// comm.* and what only moves gradients: exposed communication. data.*: data wait. optimizer.*: the optimizer. Keys of
// several parts, or of none alone (strategy.kind, model.*): exposed communication, which is what strategies differ in.
Lever lever_of(const std::vector<std::string>& keys_that_differ);

// One sentence with the ceiling: with a share p of the step in what the change touches, no change of it makes the step
// more than 1 / (1 - p) times as fast (Amdahl 1967). "62 % data wait, 3 % exposed communication: a faster backend gains
// at most 3 %."
std::string ceiling_of(const Split& split, const Lever& lever);

}  // namespace ddprun::compare
