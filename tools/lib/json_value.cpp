#include "tools/lib/json_value.hpp"

#include <utility>

#include "ddprun/error.hpp"
#include "ddprun/records.hpp"

namespace ddprun::tools {
namespace {

using nlohmann::json;

// These set `member`, or return what they expected.
const char* take(const json& value, double& member) {
  if (!value.is_number()) return "a number";
  member = value.get<double>();
  return nullptr;
}

// nlohmann keeps an integer above INT64_MAX as unsigned, and would convert it to a negative number.
const char* take(const json& value, int64_t& member) {
  const bool fits = !value.is_number_unsigned() || std::in_range<int64_t>(value.get<uint64_t>());
  if (!value.is_number_integer() || !fits) return "an integer of 64 bits";
  member = value.get<int64_t>();
  return nullptr;
}

const char* take(const json& value, std::string& member) {
  if (!value.is_string()) return "a string";
  member = value.get<std::string>();
  return nullptr;
}

template <class Number>
const char* take(const json& values, std::vector<Number>& member) {
  constexpr bool kReal = std::is_same_v<Number, double>;
  constexpr const char* kExpected = kReal ? "a list of numbers" : "a list of integers of 64 bits";
  if (!values.is_array()) return kExpected;
  for (const json& value : values) {
    Number& next = member.emplace_back();
    if (kReal && value.is_null()) {
      next = static_cast<Number>(record::kAbsent);
    } else if (take(value, next) != nullptr) {
      return kExpected;
    }
  }
  return nullptr;
}

}  // namespace

const json& require(const json& object, const char* key, const std::string& place) {
  if (!object.is_object()) throw Error(ExitCode::usage, place + ": expected a JSON object");
  const auto found = object.find(key);
  if (found == object.end()) throw Error(ExitCode::usage, place + ": \"" + key + "\" is missing");
  return *found;
}

template <class Value>
void read_value(const json& object, const std::string& key, Value& member, const std::string& place) {
  const auto found = object.find(key);
  if (found == object.end()) return;
  const char* const expected = take(*found, member);
  if (expected != nullptr) throw Error(ExitCode::usage, place + ": \"" + key + "\": expected " + expected);
}

template void read_value(const json&, const std::string&, double&, const std::string&);
template void read_value(const json&, const std::string&, int64_t&, const std::string&);
template void read_value(const json&, const std::string&, std::string&, const std::string&);
template void read_value(const json&, const std::string&, std::vector<double>&, const std::string&);
template void read_value(const json&, const std::string&, std::vector<int64_t>&, const std::string&);

}  // namespace ddprun::tools
