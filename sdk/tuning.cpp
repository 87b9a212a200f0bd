#include "ddprun/plugin/tuning.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace ddprun {
namespace {

[[noreturn]] void refuse_tuning(int line, const std::string& why) {
  throw std::invalid_argument("line " + std::to_string(line) + ": " + why);
}

// "max", or a number from 1.
template <class T>
T limit_of(const std::string& text, int line) {
  if (text == "max") return std::numeric_limits<T>::max();
  const auto value = parse_integer(text);
  if (!value || *value < 1 || !std::in_range<T>(*value)) {
    refuse_tuning(line, '"' + text + "\": expected a number from 1, or max");
  }
  return static_cast<T>(*value);
}

template <class T>
std::string limit_text(T limit) {
  return limit == std::numeric_limits<T>::max() ? "max" : std::to_string(limit);
}

TuningRow tuning_row(const std::string& text, int line) {
  std::istringstream words(text);
  std::string backend, ranks, bytes, algorithm, more;
  words >> backend >> ranks >> bytes >> algorithm;
  if (algorithm.empty() || words >> more) refuse_tuning(line, "expected BACKEND RANKS BYTES ALGORITHM");
  return {backend, limit_of<int>(ranks, line), limit_of<uint64_t>(bytes, line), algorithm};
}

std::size_t index_of(const std::string& name, std::string_view backend,
                     std::span<const ddprun_comm_algorithm> algorithms) {
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    if (name == algorithms[i].name) return i;
  }
  throw std::invalid_argument("names \"" + name + "\", which " + std::string(backend) + " has not");
}

// Behind `last`, a row of the same backend, may come one of more ranks once the limits have ended, else a larger limit.
void require_next(const TuningRow& last, const TuningRow& row, int line) {
  const bool ended = last.bytes == TuningRow::kNoLimit;
  if (row.ranks < last.ranks || (row.ranks == last.ranks && row.bytes <= last.bytes)) {
    refuse_tuning(line, "ranks and bytes must ascend");
  }
  if (row.ranks > last.ranks && !ended) refuse_tuning(line, "the ranks before need a last row with bytes max");
}

}  // namespace

Tuning Tuning::parse(std::string_view text, std::string_view backend,
                     std::span<const ddprun_comm_algorithm> algorithms) {
  constexpr std::string_view kHead = "ddprun-tuning 1";
  std::istringstream lines{std::string(text)};
  Tuning table;
  bool headed = false;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos || line[0] == '#') continue;
    if (!headed && line != kHead) refuse_tuning(number, "expected \"" + std::string(kHead) + '"');
    if (std::exchange(headed, true) == false) continue;
    TuningRow row = tuning_row(line, number);
    if (row.backend != backend) continue;
    if (!table.rows_.empty()) require_next(table.rows_.back(), row, number);
    if (!algorithms.empty()) row.index = index_of(row.algorithm, backend, algorithms);
    table.rows_.push_back(std::move(row));
  }
  if (table.rows_.empty()) throw std::invalid_argument("it has no row of \"" + std::string(backend) + '"');
  if (table.rows_.back().bytes != TuningRow::kNoLimit) refuse_tuning(number, "the last row needs bytes max");
  return table;
}

const TuningRow& Tuning::row(int ranks, uint64_t bytes) const {
  const int most = std::min(ranks, rows_.back().ranks);
  return *std::find_if(rows_.begin(), rows_.end(),
                       [&](const TuningRow& row) { return row.ranks >= most && row.bytes >= bytes; });
}

bool Tuning::uses(int ranks, std::string_view algorithm) const {
  const int of_group = row(ranks, 0).ranks;
  return std::any_of(rows_.begin(), rows_.end(),
                     [&](const TuningRow& row) { return row.ranks == of_group && row.algorithm == algorithm; });
}

std::string to_text(const std::vector<TuningRow>& rows, const std::string& origin) {
  std::string text = "ddprun-tuning 1\n# " + origin + "\n# backend  ranks  bytes up to  algorithm\n";
  for (const TuningRow& row : rows) {
    text += row.backend + " " + limit_text(row.ranks) + " " + limit_text(row.bytes) + " " + row.algorithm + "\n";
  }
  return text;
}

Tuning tuning_of(const Host& host, std::string_view backend, std::span<const ddprun_comm_algorithm> algorithms,
                 std::string_view stock) {
  const std::string path = host.options().text("tuning");
  if (path.empty()) return Tuning::parse(stock, backend, algorithms);
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const bool read = !file.bad() && file.is_open();
  const auto all = host.allgather(read ? "read\n" + text : "cannot be read");
  try {
    if (!read) throw std::invalid_argument("cannot be read");
    const auto same = std::count(all.begin(), all.end(), all[static_cast<std::size_t>(host.rank())]);
    if (same != host.size()) throw std::invalid_argument("differs between the ranks");
    return Tuning::parse(text, backend, algorithms);
  } catch (const std::invalid_argument& error) {
    throw CommError(CommStatus::invalid, "comm.options.tuning = \"" + path + "\": " + error.what());
  }
}

}  // namespace ddprun
