// Earlier runs as members of a comparison.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/compare/request.hpp"

namespace ddprun::compare {

// One member for each group of run folders (Request::runs). If folders are given without groups, one member for each
// configuration among them. The runs of one group must have the same configuration, except for experiment.*. A member
// has the name of its experiment, or of its folder if names are not unique. Throws Error(usage).
std::vector<Member> members_of_groups(const std::vector<std::vector<std::string>>& groups, int64_t warmup_steps);
std::vector<Member> members_of_folders(const std::vector<std::string>& folders, int64_t warmup_steps);

}  // namespace ddprun::compare
