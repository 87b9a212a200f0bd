#include "tools/lib/json_value.hpp"

#include <utility>

#include "ddprun/error.hpp"
#include "ddprun/records.hpp"

namespace ddprun::record {
namespace {

using nlohmann::json;

const json* find(const json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

[[noreturn]] void refuse(const std::string& key, const std::string& expected, const std::string& place) {
  throw Error(ExitCode::usage, place + ": \"" + key + "\": expected " + expected);
}

// nlohmann keeps an integer above INT64_MAX as unsigned, and would convert it to a negative number.
bool is_int64(const json& value) {
  return value.is_number_integer() && (!value.is_number_unsigned() || std::in_range<int64_t>(value.get<uint64_t>()));
}

}  // namespace

const json& require(const json& object, const char* key, const std::string& place) {
  if (!object.is_object()) throw Error(ExitCode::usage, place + ": expected a JSON object");
  const json* value = find(object, key);
  if (value == nullptr) throw Error(ExitCode::usage, place + ": \"" + key + "\" is missing");
  return *value;
}

void read_value(const json& object, const std::string& key, double& member, const std::string& place) {
  const json* value = find(object, key);
  if (value == nullptr) return;
  if (!value->is_number()) refuse(key, "a number", place);
  member = value->get<double>();
}

void read_value(const json& object, const std::string& key, int64_t& member, const std::string& place) {
  const json* value = find(object, key);
  if (value == nullptr) return;
  if (!is_int64(*value)) refuse(key, "an integer of 64 bits", place);
  member = value->get<int64_t>();
}

void read_value(const json& object, const std::string& key, std::string& member, const std::string& place) {
  const json* value = find(object, key);
  if (value == nullptr) return;
  if (!value->is_string()) refuse(key, "a string", place);
  member = value->get<std::string>();
}

void read_value(const json& object, const std::string& key, std::vector<double>& member, const std::string& place) {
  const json* values = find(object, key);
  if (values == nullptr) return;
  if (!values->is_array()) refuse(key, "a list of numbers", place);
  for (const json& value : *values) {
    if (!value.is_number() && !value.is_null()) refuse(key, "a list of numbers", place);
    member.push_back(value.is_null() ? kAbsent : value.get<double>());
  }
}

void read_value(const json& object, const std::string& key, std::vector<int64_t>& member, const std::string& place) {
  const json* values = find(object, key);
  if (values == nullptr) return;
  if (!values->is_array()) refuse(key, "a list of integers", place);
  for (const json& value : *values) {
    if (!is_int64(value)) refuse(key, "a list of integers of 64 bits", place);
    member.push_back(value.get<int64_t>());
  }
}

}  // namespace ddprun::record
