// Where the ranks of a job diverged, from their files collectives-rank<N>.json.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tools/lib/run.hpp"
#include "tools/report/page.hpp"

namespace ddprun::report {

using CollectivesByRank = std::map<int64_t, record::RankCollectives>;

struct Divergence {
  int64_t number = 0;  // of the call; without a divergence, of the last call that all have finished
  std::string text;    // a sentence that describes it, without a full stop
};

// The first call that differs between ranks, that some ranks have not started, or that some have not finished, at the
// time of the first file: later files may show later calls. In all functions, `files` must not be empty.
Divergence find_divergence(const CollectivesByRank& files);

// One line: where the ranks diverged, and which ranks have no file.
std::string collectives_line(const CollectivesByRank& files);

// That line, each rank's last collectives, and the collectives around the first divergence.
Section collectives_section(const CollectivesByRank& files);

}  // namespace ddprun::report
