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
// Lines that begin with '#' and empty lines say nothing. A group of ranks takes the rows of its size, else those of the
// next larger one, else those of the largest; of these the first whose limit is not below the vector's bytes. Each
// number of ranks has ascending limits and ends with "max".
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
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
inline std::string to_text(const std::vector<TuningRow>& rows, const std::string& origin);

// What such a backend declares. A relative path in a config is relative to the config's folder.
inline constexpr ddprun_option_spec kTuningOption = text_option(
    "tuning", nullptr, "the file by which auto chooses, written by ddprun bench --tune; the plugin has one of its own");

// For a backend's constructor (collective): the table of comm.options.tuning where that is given, else `stock`. Throws
// CommError(CommStatus::invalid) for a file that cannot be read, is no such table, names an algorithm that is not among
// `algorithms`, or differs between the ranks.
inline Tuning tuning_of(const Host& host, std::string_view backend, std::span<const ddprun_comm_algorithm> algorithms,
                        std::string_view stock);

namespace detail {

[[noreturn]] inline void refuse_tuning(int line, const std::string& why) {
  throw std::invalid_argument("line " + std::to_string(line) + ": " + why);
}

// "max", or a number from 1.
template <class T>
T limit_of(const std::string& text, int line) {
  if (text == "max") return std::numeric_limits<T>::max();
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    refuse_tuning(line, '"' + text + "\": expected a number from 1, or max");
  }
  return value;
}

template <class T>
std::string limit_text(T limit) {
  return limit == std::numeric_limits<T>::max() ? "max" : std::to_string(limit);
}

inline TuningRow tuning_row(const std::string& text, int line) {
  std::istringstream words(text);
  std::string backend, ranks, bytes, algorithm, more;
  words >> backend >> ranks >> bytes >> algorithm;
  if (algorithm.empty() || words >> more) refuse_tuning(line, "expected BACKEND RANKS BYTES ALGORITHM");
  return {backend, limit_of<int>(ranks, line), limit_of<uint64_t>(bytes, line), algorithm};
}

inline std::size_t index_of(const std::string& name, std::string_view backend,
                            std::span<const ddprun_comm_algorithm> algorithms) {
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    if (name == algorithms[i].name) return i;
  }
  throw std::invalid_argument("names \"" + name + "\", which " + std::string(backend) + " has not");
}

// Behind `last`, a row of the same backend, may come one of more ranks once the limits have ended, else a larger limit.
inline void require_next(const TuningRow& last, const TuningRow& row, int line) {
  const bool ended = last.bytes == TuningRow::kNoLimit;
  if (row.ranks < last.ranks || (row.ranks == last.ranks && row.bytes <= last.bytes)) {
    refuse_tuning(line, "ranks and bytes must ascend");
  }
  if (row.ranks > last.ranks && !ended) refuse_tuning(line, "the ranks before need a last row with bytes max");
}

}  // namespace detail

inline Tuning Tuning::parse(std::string_view text, std::string_view backend,
                            std::span<const ddprun_comm_algorithm> algorithms) {
  constexpr std::string_view kHead = "ddprun-tuning 1";
  std::istringstream lines{std::string(text)};
  Tuning table;
  bool headed = false;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos || line[0] == '#') continue;
    if (!headed && line != kHead) detail::refuse_tuning(number, "expected \"" + std::string(kHead) + '"');
    if (std::exchange(headed, true) == false) continue;
    TuningRow row = detail::tuning_row(line, number);
    if (row.backend != backend) continue;
    if (!table.rows_.empty()) detail::require_next(table.rows_.back(), row, number);
    if (!algorithms.empty()) row.index = detail::index_of(row.algorithm, backend, algorithms);
    table.rows_.push_back(std::move(row));
  }
  if (table.rows_.empty()) throw std::invalid_argument("it has no row of \"" + std::string(backend) + '"');
  if (table.rows_.back().bytes != TuningRow::kNoLimit) detail::refuse_tuning(number, "the last row needs bytes max");
  return table;
}

inline const TuningRow& Tuning::row(int ranks, uint64_t bytes) const {
  const int most = std::min(ranks, rows_.back().ranks);
  return *std::find_if(rows_.begin(), rows_.end(),
                       [&](const TuningRow& row) { return row.ranks >= most && row.bytes >= bytes; });
}

inline bool Tuning::uses(int ranks, std::string_view algorithm) const {
  const int of_group = row(ranks, 0).ranks;
  return std::any_of(rows_.begin(), rows_.end(),
                     [&](const TuningRow& row) { return row.ranks == of_group && row.algorithm == algorithm; });
}

inline std::string to_text(const std::vector<TuningRow>& rows, const std::string& origin) {
  std::string text = "ddprun-tuning 1\n# " + origin + "\n# backend  ranks  bytes up to  algorithm\n";
  for (const TuningRow& row : rows) {
    text += row.backend + " " + detail::limit_text(row.ranks) + " " + detail::limit_text(row.bytes) + " " +
            row.algorithm + "\n";
  }
  return text;
}

inline Tuning tuning_of(const Host& host, std::string_view backend, std::span<const ddprun_comm_algorithm> algorithms,
                        std::string_view stock) {
  const std::string path = host.options().text("tuning");
  if (path.empty()) return Tuning::parse(stock, backend, algorithms);
  const auto refuse = [&](const std::string& why) -> void {
    throw CommError(CommStatus::invalid, "comm.options.tuning = \"" + path + "\": " + why);
  };
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const bool read = !file.bad() && file.is_open();
  const auto all = host.allgather(read ? "read\n" + text : "cannot be read");
  if (!read) refuse("cannot be read");
  for (const std::string& other : all) {
    if (other != all[static_cast<std::size_t>(host.rank())]) refuse("differs between the ranks");
  }
  try {
    return Tuning::parse(text, backend, algorithms);
  } catch (const std::invalid_argument& error) {
    throw CommError(CommStatus::invalid, "comm.options.tuning = \"" + path + "\": " + error.what());
  }
}

}  // namespace ddprun
