// Findings as a table for people and as JSON for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/doctor/finding.hpp"

namespace ddprun::doctor {

// The table, then a line that counts what is not ok. Ends in a newline.
std::string table_text(const std::vector<Finding>& findings);

// [{"group": ..., "name": ..., "state": "ok", "value": ..., "advice": ""}, ...]
nlohmann::ordered_json to_json(const std::vector<Finding>& findings);

// Writes the value to a file, or to stdout for "-". Throws Error(failure).
void write_json(const std::string& file, const nlohmann::ordered_json& value);

bool has_error(const std::vector<Finding>& findings);

}  // namespace ddprun::doctor
