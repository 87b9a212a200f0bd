// Hints for unknown names.
#pragma once

#include <string>

namespace ddprun::config {

// For an unknown key of `table`: the nearest key there, the same name in another table, or all keys of the table.
std::string unknown_key(const std::string& table, const std::string& name);
// For an unknown table.
std::string unknown_table(const std::string& name);
// For an unknown name before the first table, where only schema_version is allowed.
std::string unknown_at_top(const std::string& name);

// If an unknown option has the name of exactly one key: the --set for it, as "--set optimizer.lr=0.1" for "--lr=0.1" and
// "--optimizer.lr=0.1", or "--set data.batch_size=VALUE" for "--batch-size". Otherwise "". [faults] has no such names.
std::string setting_for_option(const std::string& option);

}  // namespace ddprun::config
