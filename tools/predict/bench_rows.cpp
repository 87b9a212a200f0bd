#include "tools/predict/bench_rows.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "ddprun/error.hpp"
#include "record/statistics.hpp"
#include "tools/lib/text_lines.hpp"

namespace ddprun::predict {
namespace {

using nlohmann::json;

// Rank 0 started the ranks of a file without hosts on its own host.
int64_t hosts_of(const json& file) {
  return std::max<int64_t>(1, static_cast<int64_t>(file.at("hosts").size()));
}

void require_one_rank_each(const json& file, const std::string& path) {
  for (const json& host : file.at("hosts")) {
    if (hosts_of(file) == 1 || host.at("ranks").size() == 1) continue;
    throw Error(ExitCode::usage, path + ": host " + host.at("name").get<std::string>() +
                                     " has several ranks; measure the links between hosts with one rank on each");
  }
}

bool is_as_in_training(const json& row) {
  return row.at("collective") == "allreduce" && row.at("in_place") == true && row.at("ranks") > 1;
}

BenchRow row_of(const json& row, int64_t hosts, const std::string& path) {
  BenchRow one;
  row.at("backend").get_to(one.backend);
  row.at("algorithm").get_to(one.requested);
  row.at("served").at("algorithm").get_to(one.algorithm);
  one.shape = {hosts, row.at("ranks").get<int64_t>() / hosts};
  row.at("size").get_to(one.bytes);
  row.at("median").get_to(one.seconds);
  for (const json& round : row.at("rounds")) {
    one.rounds.push_back(record::quantile(round.at("samples").get<std::vector<double>>(), 0.5));
  }
  const auto positive = [](double seconds) { return seconds > 0; };
  if (one.rounds.empty() || !positive(one.seconds) || !std::all_of(one.rounds.begin(), one.rounds.end(), positive)) {
    throw Error(ExitCode::usage, path + ": an allreduce of " + std::to_string(one.bytes) + " bytes has no times");
  }
  return one;
}

void read(const std::string& path, bool between_hosts, std::vector<BenchRow>& rows) {
  const std::string text = read_text(path);
  std::size_t found = 0;
  try {
    const json file = json::parse(text);
    file.at("ddprun_bench");
    if (between_hosts) require_one_rank_each(file, path);
    const auto has_own_memory = [&](const json& row) {
      return std::any_of(file.at("rows").begin(), file.at("rows").end(), [&](const json& other) {
        return other.at("backend") == row.at("backend") && other.at("buffer") == "plugin";
      });
    };
    for (const json& row : file.at("rows")) {
      if (!is_as_in_training(row) || (row.at("buffer") != "plugin" && has_own_memory(row))) continue;
      rows.push_back(row_of(row, hosts_of(file), path));
      ++found;
    }
  } catch (const json::exception&) {
    throw Error(ExitCode::usage, path + ": not a file of `ddprun bench --json`");
  }
  if (found == 0) throw Error(ExitCode::usage, path + ": has no allreduce in place between two or more ranks");
}

}  // namespace

std::vector<BenchRow> read_bench(const std::vector<std::string>& paths) {
  std::vector<BenchRow> rows;
  for (const std::string& path : paths) read(path, true, rows);
  return rows;
}

std::vector<BenchRow> read_bench_of_any_hosts(const std::string& path) {
  std::vector<BenchRow> rows;
  read(path, false, rows);
  return rows;
}

}  // namespace ddprun::predict
