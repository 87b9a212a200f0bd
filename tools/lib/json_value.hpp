// Reads members of a JSON object; errors name the place. Only for this module's .cpp files: includes nlohmann.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace ddprun::tools {

// The value of a required key. Throws Error(usage) "<place>: ..." if it is missing, or if `object` is not an object.
const nlohmann::json& require(const nlohmann::json& object, const char* key, const std::string& place);

// Sets `member` to the key's value, or leaves it unchanged if the key is absent. Throws Error(usage) for a wrong type.
// For double, int64_t, std::string, and lists of numbers; in a list of doubles, null is NaN.
template <class Value>
void read_value(const nlohmann::json& object, const std::string& key, Value& member, const std::string& place);

}  // namespace ddprun::tools
