// Reads collectives-rank<N>.json.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "record/collectives.hpp"

namespace ddprun::record {

// The content of a file; `path` is for messages. Safe for any text. Throws Error(usage).
RankCollectives parse_collectives(const std::string& text, const std::string& path);

// By rank, without the ranks that have no file. Throws Error(usage) for a damaged file.
std::map<int64_t, RankCollectives> read_collectives(const std::string& run_dir);

}  // namespace ddprun::record
