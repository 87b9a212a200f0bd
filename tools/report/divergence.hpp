// Where the ranks of a job diverged, from their files collectives-rank<N>.json.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/lib/collectives.hpp"

namespace ddprun::report {

using CollectivesByRank = std::map<int64_t, record::RankCollectives>;

// The time at which all ranks with a file are compared, in seconds since 1970: that of the first file. Later files may
// show later calls.
double common_time(const CollectivesByRank& files);

// The ranks below the world size without a file.
std::vector<int> missing_ranks(const CollectivesByRank& files);

// "allreduce (float32 x 100, sum)"
std::string describe(const record::CollectiveCall& call);

// The call of this number; null if the file does not have it.
const record::CollectiveCall* find_call(const record::RankCollectives& file, int64_t number);

enum class Progress { not_started, started, finished };
// Of a call, or null, at this time. A failed call is one that has started and not finished.
Progress progress_of(const record::CollectiveCall* call, double time);

struct Divergence {
  enum class Kind { none, differs, not_started, not_finished };
  Kind kind = Kind::none;
  int64_t number = 0;  // of that call; for `none`, of the last call that all have finished
  std::string text;    // a sentence that describes it, without a full stop
};

// The first call that differs between ranks, that some ranks have not started, or that some have not finished. `files`
// must not be empty.
Divergence find_divergence(const CollectivesByRank& files);

}  // namespace ddprun::report
