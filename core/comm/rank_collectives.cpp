#include "comm/rank_collectives.hpp"

#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "record/run_dir.hpp"

namespace ddprun::comm {
namespace {

using nlohmann::ordered_json;

// Keys that do not apply are left out.
ordered_json object_of(const RecordedCall& call) {
  const CallShape& shape = call.shape;
  ordered_json object{{"number", shape.number}, {"op", name_of(shape.kind)}};
  if (has_data(shape)) {
    object.update({{"dtype", name_of(shape.dtype)}, {"count", shape.count}});
    if (reduces(shape.kind)) object["reduction"] = name_of(shape.op);
    if (shape.kind == Kind::broadcast) object["root"] = shape.root;
    if (shape.bucket >= 0) object["bucket"] = shape.bucket;
    object["memory"] = name_of(shape.memory);
  }
  object.update({{"step", call.step}, {"state", name_of(call.state)}, {"start", call.start}});
  if (call.state != CallState::started) object.update({{"end", call.end()}, {"duration", call.duration}});
  return object;
}

ordered_json object_of(const RankCollectives& file) {
  return {{"rank", file.rank},       {"world", file.world},   {"host", file.host},      {"pid", file.pid},
          {"backend", file.backend}, {"reason", file.reason}, {"written", file.written}};
}

// Error messages of other programs may be in it, in any encoding.
std::string line_of(const ordered_json& object) {
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

std::string collectives_path(const std::string& run_dir, int64_t rank) {
  return record::file_in(run_dir, kCollectivesPrefix + std::to_string(rank) + ".json");
}

void write_collectives(const std::string& run_dir, const RankCollectives& collectives) {
  std::string text = line_of(object_of(collectives));
  text.back() = ',';
  text += "\"calls\":[";
  const char* before = "\n";
  for (const RecordedCall& call : collectives.calls) {  // a line each
    text += before + line_of(object_of(call));
    before = ",\n";
  }
  text += "\n]}\n";
  replace_file(collectives_path(run_dir, collectives.rank), text);
}

}  // namespace ddprun::comm
