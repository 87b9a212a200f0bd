// What the report says about the last collectives of the ranks.
#pragma once

#include <string>

#include "tools/report/divergence.hpp"
#include "tools/report/page.hpp"

namespace ddprun::report {

// One line: where the ranks diverged, and which ranks have no file. `files` must not be empty.
std::string collectives_line(const CollectivesByRank& files);

// That line, each rank's last collectives, and the collectives around the first divergence.
Section collectives_section(const CollectivesByRank& files);

}  // namespace ddprun::report
