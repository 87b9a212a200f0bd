#include "tools/lib/run.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/words.hpp"
#include "tools/lib/json_value.hpp"

namespace ddprun::tools {
namespace {

namespace fs = std::filesystem;
using comm::CallShape, comm::RankCollectives, comm::RecordedCall;
using nlohmann::json;

constexpr int64_t kLargestWorld = 1 << 16;  // readers loop over the ranks
constexpr uint64_t kLargestNumber = uint64_t{1} << 53;
constexpr double kLatest = 1e11;  // seconds since 1970: the year 5138

void check(bool holds, const char* key, const std::string& expected, const std::string& place) {
  if (!holds) throw Error(ExitCode::usage, fmt::format("{}: \"{}\": expected {}", place, key, expected));
}

bool is_time(double seconds) {
  return seconds >= 0 && seconds <= kLatest;
}

// A key that is absent leaves `member` unchanged.
template <class Integer>
void read_integer(const json& object, const char* key, Integer& member, const std::string& place) {
  auto value = static_cast<int64_t>(member);
  read_value(object, key, value, place);
  member = static_cast<Integer>(value);
  check(static_cast<int64_t>(member) == value, key, "an integer in its range", place);
}

// The value with the name under this key. A key that is absent leaves `member` unchanged.
template <class Enum>
void read_name(const json& object, const char* key, std::size_t values, Enum& member, const std::string& place) {
  std::string name;
  read_value(object, key, name, place);
  if (name.empty()) return;
  std::size_t value = 0;
  while (value < values && name_of(static_cast<Enum>(value)) != name) ++value;
  check(value < values, key, "the name of a known value, not \"" + printable(name) + '"', place);
  member = static_cast<Enum>(value);
}

void read_file(const json& object, RankCollectives& file, const std::string& path) {
  for (const char* key : {"rank", "world", "written"}) require(object, key, path);
  read_value(object, "rank", file.rank, path);
  read_value(object, "world", file.world, path);
  read_value(object, "host", file.host, path);
  read_value(object, "pid", file.pid, path);
  read_value(object, "backend", file.backend, path);
  read_value(object, "reason", file.reason, path);
  read_value(object, "written", file.written, path);
  check(file.world >= 1 && file.world <= kLargestWorld, "world", "the number of ranks", path);
  check(file.rank >= 0 && file.rank < file.world, "rank", "a rank below the number of ranks", path);
  check(is_time(file.written), "written", "seconds since 1970", path);
}

// Readers search for a call by its number, which is above `before`, that of the call before.
RecordedCall call_in(const json& object, uint64_t before, const std::string& place) {
  for (const char* key : {"number", "op", "state", "start"}) require(object, key, place);
  RecordedCall call;
  CallShape& shape = call.shape;
  shape.dtype = static_cast<DType>(kDTypeCount);  // a call without data has none
  read_integer(object, "number", shape.number, place);
  check(shape.number > before && shape.number <= kLargestNumber, "number", "a number above that of the call before",
        place);
  read_name(object, "op", comm::kKindCount, shape.kind, place);
  read_name(object, "dtype", kDTypeCount, shape.dtype, place);
  read_integer(object, "count", shape.count, place);
  check(shape.count <= kLargestNumber, "count", "the number of elements", place);
  read_name(object, "reduction", kOpCount, shape.op, place);
  read_integer(object, "root", shape.root, place);
  read_integer(object, "bucket", shape.bucket, place);
  read_name(object, "memory", kMemoryCount, shape.memory, place);
  read_integer(object, "step", call.step, place);
  read_name(object, "state", comm::kCallStateCount, call.state, place);
  read_value(object, "start", call.start, place);
  read_value(object, "duration", call.duration, place);
  check(is_time(call.start), "start", "seconds since 1970", place);
  check(call.state == comm::CallState::started || is_time(call.end()), "duration", "seconds", place);
  return call;
}

}  // namespace

RankCollectives parse_collectives(const std::string& text, const std::string& path) {
  const auto object = json::parse(text, nullptr, false);
  if (object.is_discarded()) throw Error(ExitCode::usage, path + ": not JSON");
  RankCollectives file;
  read_file(object, file, path);
  const json& calls = require(object, "calls", path);
  if (!calls.is_array()) throw Error(ExitCode::usage, path + ": calls: expected a list");
  for (const auto& each : calls) {
    const std::string place = fmt::format("{}: calls[{}]", path, file.calls.size());
    file.calls.push_back(call_in(each, file.calls.empty() ? 0 : file.calls.back().shape.number, place));
  }
  return file;
}

std::map<int64_t, RankCollectives> read_collectives(const std::string& run_dir) {
  std::map<int64_t, RankCollectives> by_rank;
  for (const auto& entry : fs::directory_iterator(run_dir)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(comm::kCollectivesPrefix) || !name.ends_with(".json")) continue;
    RankCollectives file = parse_collectives(read_text(entry.path()), entry.path());
    const int64_t rank = file.rank;
    by_rank[rank] = std::move(file);
  }
  return by_rank;
}

}  // namespace ddprun::tools
