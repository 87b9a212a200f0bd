#include "record/recorder.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "record/fields.hpp"

namespace ddprun::record {
namespace {

using nlohmann::ordered_json;

void put(ordered_json& object, const char* key, double value) {
  if (std::isfinite(value)) object[key] = value;
}
void put(ordered_json& object, const char* key, int64_t value) {
  if (value >= 0) object[key] = value;
}
void put(ordered_json& object, const char* key, const std::string& value) {
  if (!value.empty()) object[key] = value;
}
// A number that was not measured is null here, because the position matters.
template <class Number>
void put(ordered_json& object, const char* key, const std::vector<Number>& values) {
  if (!values.empty()) object[key] = values;
}

void put(ordered_json& object, const char* key, const TensorDigest& digest) {
  object[key] = {{"hash", digest.hash}, {"norm", digest.norm}, {"sketch", digest.sketch}};
}

ordered_json object_of(const auto& record) {
  ordered_json object = ordered_json::object();
  for_each_field(record, [&](const char* key, const auto& value) { put(object, key, value); });
  return object;
}

std::string text_of(const ordered_json& object, int indent = -1) {
  return object.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

std::string line_of(const auto& record) {
  return text_of(object_of(record));
}
template std::string line_of(const StepRecord&);
template std::string line_of(const EpochRecord&);
template std::string line_of(const GpuRecord&);
template std::string line_of(const ParityRecord&);

std::string to_json(const Summary& summary) {
  ordered_json object = object_of(summary);
  for (const auto& [name, value] : summary.learned) put(object, ("learned." + name).c_str(), value);
  return text_of(object, 2) + '\n';
}

}  // namespace ddprun::record
