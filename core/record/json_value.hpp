// Members out of a JSON object, with the place of what does not fit. Only for this module's .cpp files: includes
// nlohmann.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ddprun::record {

// The value of a key that must be there, of an object that must be one. Throws Error(usage): "<place>: ...".
const nlohmann::json& require(const nlohmann::json& object, const char* key, const std::string& place);

// Gives `member` the key's value; leaves it alone where the key is absent. Throws Error(usage) where the type is
// another. In a list of doubles, null is NaN.
void read_value(const nlohmann::json& object, const std::string& key, double& member, const std::string& place);
void read_value(const nlohmann::json& object, const std::string& key, int64_t& member, const std::string& place);
void read_value(const nlohmann::json& object, const std::string& key, std::string& member, const std::string& place);
void read_value(const nlohmann::json& object, const std::string& key, std::vector<double>& member,
                const std::string& place);
void read_value(const nlohmann::json& object, const std::string& key, std::vector<int64_t>& member,
                const std::string& place);

}  // namespace ddprun::record
