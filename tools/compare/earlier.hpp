// Runs that were made before, as members of a comparison.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/compare/request.hpp"

namespace ddprun::compare {

// One member for each group of run folders (Request::runs), or, where folders are simply listed, one for each
// configuration that they have: the runs of one group must have one configuration, but for experiment.*. Named after
// the experiment, or after the folder where names are not unique. Throws Error(usage).
std::vector<Member> members_of_groups(const std::vector<std::vector<std::string>>& groups, int64_t warmup_steps);
std::vector<Member> members_of_folders(const std::vector<std::string>& folders, int64_t warmup_steps);

}  // namespace ddprun::compare
