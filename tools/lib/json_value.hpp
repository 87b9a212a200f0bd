// Reads members of a JSON object; errors name the place. Only for this module's .cpp files: includes nlohmann.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ddprun::record {

// The value of a required key. Throws Error(usage) "<place>: ..." if it is missing, or if `object` is not an object.
const nlohmann::json& require(const nlohmann::json& object, const char* key, const std::string& place);

// Sets `member` to the key's value, or leaves it unchanged if the key is absent. Throws Error(usage) for a wrong type.
// In a list of doubles, null is NaN.
void read_value(const nlohmann::json& object, const std::string& key, double& member, const std::string& place);
void read_value(const nlohmann::json& object, const std::string& key, int64_t& member, const std::string& place);
void read_value(const nlohmann::json& object, const std::string& key, std::string& member, const std::string& place);
void read_value(const nlohmann::json& object, const std::string& key, std::vector<double>& member,
                const std::string& place);
void read_value(const nlohmann::json& object, const std::string& key, std::vector<int64_t>& member,
                const std::string& place);

}  // namespace ddprun::record
