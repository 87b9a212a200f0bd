// Why a variant is not faster: where its step's time goes, and what a faster variant does in less.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/figures.hpp"

namespace ddprun::compare {

// The part of the step that a change of these keys is about. data.*: data wait. optimizer.*: the optimizer. All others:
// exposed communication, which is where strategies and backends differ.
double Split::*lever_of(const std::vector<std::string>& keys_that_differ);

// The largest part, and the lever with the step's time without it (Amdahl 1967):
// "62 % data wait, 3 % exposed communication; without the latter, a step would be 3 % faster".
std::string ceiling_of(const Split& split, double Split::*lever);

// The differences of the parts, if they are at least a twentieth of the largest; what is slower first: "exposed
// communication +2.31 ms, optimizer +177 us, forward -12.0 us".
std::string difference_of(const Split& slower, const Split& faster);

}  // namespace ddprun::compare
