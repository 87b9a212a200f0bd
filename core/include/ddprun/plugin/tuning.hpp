// ddprun/plugin/tuning.hpp: which algorithm "auto" takes for an allreduce, as a small table: the one that a plugin
// ships, or one that `ddprun bench --tune FILE` has measured and comm.options.tuning = "FILE" names. As text:
//
//   ddprun-tuning 1
//   # backend  ranks  bytes up to  algorithm
//   gloo 2 8388608 tree
//   gloo 2 max ring
//   gloo max 2097152 tree
//   gloo max max ring
//
// Empty lines and lines that begin with '#' are ignored. Which rows apply: those of the group's number of ranks; if
// there are none, those of the next larger number; if there are none, those of the largest. Of these rows, the first
// whose limit is at least the vector's size applies. For each number of ranks, the limits ascend and end with "max".
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ddprun/plugin/comm_plugin.hpp"

namespace ddprun {

struct TuningRow {
  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
  static constexpr int kAnyRanks = std::numeric_limits<int>::max();

  std::string backend;
  int ranks = kAnyRanks;      // up to
  uint64_t bytes = kNoLimit;  // up to
  std::string algorithm;
  std::size_t index = 0;  // of the algorithm, in the list that parse() was given
};

// The rows of one backend. Immutable; any thread.
class Tuning {
 public:
  // Pure. Throws std::invalid_argument, one line with the number of the line where there is one, for a text that is not
  // as above, that has no row of `backend`, or that names an algorithm which is not among `algorithms`, if any are
  // given.
  static Tuning parse(std::string_view text, std::string_view backend,
                      std::span<const ddprun_comm_algorithm> algorithms = {});

  // A function of its arguments only, so that all ranks agree and runs repeat.
  const TuningRow& row(int ranks, uint64_t bytes) const;
  const std::string& algorithm(int ranks, uint64_t bytes) const { return row(ranks, bytes).algorithm; }
  // The algorithm as an index into the list that parse() was given: a backend's enum.
  std::size_t index(int ranks, uint64_t bytes) const { return row(ranks, bytes).index; }
  // Whether row() names this algorithm for any size.
  bool uses(int ranks, std::string_view algorithm) const;
  const std::vector<TuningRow>& rows() const { return rows_; }

 private:
  std::vector<TuningRow> rows_;  // ascending by ranks, then by bytes
};

// The text of a table; `origin` becomes its first comment.
std::string to_text(const std::vector<TuningRow>& rows, const std::string& origin);

// The option of a backend whose "auto" uses a tuning table. A relative path in a config is relative to the config's
// folder.
inline constexpr ddprun_option_spec kTuningOption = text_option(
    "tuning", nullptr, "the file by which auto chooses, written by ddprun bench --tune; the plugin has one of its own");

// For a backend's constructor (collective): the table of comm.options.tuning where that is given, else `stock`. Throws
// CommError(CommStatus::invalid) for a file that cannot be read, is no such table, names an algorithm that is not among
// `algorithms`, or differs between the ranks.
Tuning tuning_of(const Host& host, std::string_view backend, std::span<const ddprun_comm_algorithm> algorithms,
                 std::string_view stock);

}  // namespace ddprun
