// Reads members of a JSON object; errors name the place. Only for this module's .cpp files: includes nlohmann.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ddprun/error.hpp"
#include "ddprun/records.hpp"

namespace ddprun::tools {

// The value of a required key. Throws Error(usage) "<place>: ..." if it is missing, or if `object` is not an object.
inline const nlohmann::json& require(const nlohmann::json& object, const char* key, const std::string& place) {
  if (!object.is_object()) throw Error(ExitCode::usage, place + ": expected a JSON object");
  const auto found = object.find(key);
  if (found == object.end()) throw Error(ExitCode::usage, place + ": \"" + key + "\" is missing");
  return *found;
}

// Sets `member`: a double, an int64_t, a std::string, or a list of numbers, where null is NaN in a list of doubles.
// Returns what it expected if the value is something else, otherwise null.
template <class Value>
const char* take(const nlohmann::json& value, Value& member) {
  if constexpr (std::is_same_v<Value, std::string>) {
    if (!value.is_string()) return "a string";
    value.get_to(member);
  } else if constexpr (std::is_same_v<Value, double>) {
    if (!value.is_number()) return "a number";
    value.get_to(member);
  } else if constexpr (std::is_same_v<Value, int64_t>) {
    // nlohmann keeps an integer above INT64_MAX as unsigned, and would convert it to a negative number.
    const bool fits = !value.is_number_unsigned() || std::in_range<int64_t>(value.get<uint64_t>());
    if (!value.is_number_integer() || !fits) return "an integer of 64 bits";
    value.get_to(member);
  } else {
    constexpr bool kReal = std::is_same_v<Value, std::vector<double>>;
    constexpr const char* kExpected = kReal ? "a list of numbers" : "a list of integers of 64 bits";
    if (!value.is_array()) return kExpected;
    for (const nlohmann::json& one : value) {
      auto& next = member.emplace_back();
      if (kReal && one.is_null()) {
        next = static_cast<typename Value::value_type>(record::kAbsent);
      } else if (take(one, next) != nullptr) {
        return kExpected;
      }
    }
  }
  return nullptr;
}

// Sets `member` to the key's value, as take() does, or leaves it unchanged if the key is absent. Throws Error(usage)
// for a wrong type.
template <class Value>
void read_value(const nlohmann::json& object, const std::string& key, Value& member, const std::string& place) {
  const auto found = object.find(key);
  if (found == object.end()) return;
  const char* const expected = take(*found, member);
  if (expected != nullptr) throw Error(ExitCode::usage, place + ": \"" + key + "\": expected " + expected);
}

}  // namespace ddprun::tools
