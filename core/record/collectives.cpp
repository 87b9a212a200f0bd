#include "record/collectives.hpp"

#include <fmt/format.h>

#include <concepts>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/file.hpp"
#include "ddprun/error.hpp"
#include "record/json_value.hpp"
#include "record/run_dir.hpp"
#include "record/text_lines.hpp"

namespace ddprun::record {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kPrefix = "collectives-rank";
constexpr int64_t kLargestWorld = 1 << 16;  // readers loop over the ranks
constexpr int64_t kLargestNumber = int64_t{1} << 53;
constexpr double kLatest = 1e11;  // seconds since 1970: the year 5138

// The keys of the file, for writing and reading.
template <class Call, class Field>
requires std::same_as<std::remove_const_t<Call>, CollectiveCall>
void for_each_key(Call& call, Field field) {
  field("number", call.number);
  field("op", call.op);
  field("dtype", call.dtype);
  field("count", call.count);
  field("reduction", call.reduction);
  field("root", call.root);
  field("bucket", call.bucket);
  field("memory", call.memory);
  field("step", call.step);
  field("state", call.state);
  field("start", call.start);
  field("end", call.end);
  field("duration", call.duration);
}

template <class File, class Field>
requires std::same_as<std::remove_const_t<File>, RankCollectives>
void for_each_key(File& file, Field field) {
  field("rank", file.rank);
  field("world", file.world);
  field("host", file.host);
  field("pid", file.pid);
  field("backend", file.backend);
  field("reason", file.reason);
  field("written", file.written);
}

bool is_absent(double value) {
  return std::isnan(value);
}
bool is_absent(int64_t value) {
  return value < 0;
}
bool is_absent(const std::string& value) {
  return value.empty();
}

template <class Record>
ordered_json object_of(const Record& record) {
  ordered_json object = ordered_json::object();
  for_each_key(record, [&](const char* key, const auto& value) {
    if (!is_absent(value)) object[key] = value;
  });
  return object;
}

template <class Record>
void read(Record& record, const nlohmann::json& object, const std::string& place) {
  for_each_key(record, [&](const char* key, auto& value) { read_value(object, key, value, place); });
}

void check(bool holds, const char* key, const char* expected, const std::string& place) {
  if (!holds) throw Error(ExitCode::usage, fmt::format("{}: \"{}\": expected {}", place, key, expected));
}

bool is_time(double seconds) {
  return is_absent(seconds) || (seconds >= 0 && seconds <= kLatest);
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

std::string collectives_path(const std::string& run_dir, int64_t rank) {
  return file_in(run_dir, fmt::format("{}{}.json", kPrefix, rank));
}

void write_collectives(const std::string& run_dir, const RankCollectives& collectives) {
  // One line for each call. Error messages of other programs may be in it, in any encoding.
  const auto line_of = [](const ordered_json& object) {
    return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  };
  std::string text = line_of(object_of(collectives));
  text.back() = ',';
  text += "\"calls\":[";
  const char* before = "\n";
  for (const CollectiveCall& call : collectives.calls) {
    text += before + line_of(object_of(call));
    before = ",\n";
  }
  text += "\n]}\n";
  replace_file(collectives_path(run_dir, collectives.rank), text);
}

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
    if (!name.starts_with(kPrefix) || !name.ends_with(".json")) continue;
    RankCollectives file = parse_collectives(text_of(entry.path()), entry.path());
    const int64_t rank = file.rank;
    by_rank[rank] = std::move(file);
  }
  return by_rank;
}

}  // namespace ddprun::record
