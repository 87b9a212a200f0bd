#include "tools/lib/run.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "ddprun/error.hpp"
#include "tools/lib/json_value.hpp"

namespace ddprun::tools {
namespace {

namespace fs = std::filesystem;
using record::CollectiveCall, record::RankCollectives;

constexpr int64_t kLargestWorld = 1 << 16;  // readers loop over the ranks
constexpr int64_t kLargestNumber = int64_t{1} << 53;
constexpr double kLatest = 1e11;  // seconds since 1970: the year 5138

template <class Record>
void read(Record& record, const nlohmann::json& object, const std::string& place) {
  for_each_key(record, [&](const char* key, auto& value) { read_value(object, key, value, place); });
}

void check(bool holds, const char* key, const char* expected, const std::string& place) {
  if (!holds) throw Error(ExitCode::usage, fmt::format("{}: \"{}\": expected {}", place, key, expected));
}

bool is_time(double seconds) {
  return std::isnan(seconds) || (seconds >= 0 && seconds <= kLatest);
}

void check_file(const RankCollectives& file, const std::string& path) {
  check(file.world >= 1 && file.world <= kLargestWorld, "world", "the number of ranks", path);
  check(file.rank >= 0 && file.rank < file.world, "rank", "a rank below the number of ranks", path);
  check(is_time(file.written), "written", "seconds since 1970", path);
}

// Readers search for a call by its number.
void check_call(const CollectiveCall& call, int64_t before, const std::string& place) {
  check(call.number > before && call.number <= kLargestNumber, "number", "a number above that of the call before",
        place);
  check(is_time(call.start), "start", "seconds since 1970", place);
  check(is_time(call.end), "end", "seconds since 1970", place);
}

}  // namespace

RankCollectives parse_collectives(const std::string& text, const std::string& path) {
  const auto object = nlohmann::json::parse(text, nullptr, false);
  if (object.is_discarded()) throw Error(ExitCode::usage, path + ": not JSON");
  RankCollectives file;
  for (const char* key : {"rank", "world", "written"}) require(object, key, path);
  read(file, object, path);
  check_file(file, path);
  const nlohmann::json& calls = require(object, "calls", path);
  if (!calls.is_array()) throw Error(ExitCode::usage, path + ": calls: expected a list");
  for (const auto& each : calls) {
    const std::string place = fmt::format("{}: calls[{}]", path, file.calls.size());
    for (const char* key : {"number", "op", "state", "start"}) require(each, key, place);
    const int64_t before = file.calls.empty() ? 0 : file.calls.back().number;
    read(file.calls.emplace_back(), each, place);
    check_call(file.calls.back(), before, place);
  }
  return file;
}

std::map<int64_t, RankCollectives> read_collectives(const std::string& run_dir) {
  std::map<int64_t, RankCollectives> by_rank;
  for (const auto& entry : fs::directory_iterator(run_dir)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(record::kCollectivesPrefix) || !name.ends_with(".json")) continue;
    RankCollectives file = parse_collectives(read_text(entry.path()), entry.path());
    const int64_t rank = file.rank;
    by_rank[rank] = std::move(file);
  }
  return by_rank;
}

}  // namespace ddprun::tools
