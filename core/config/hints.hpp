// What to do about a name that the scheme does not know.
#pragma once

#include <string>

namespace ddprun::config {

// `name` is no key of `table`: the nearest one there, or the same name in another table, or all that there is.
std::string unknown_key(const std::string& table, const std::string& name);
// `name` is no table.
std::string unknown_table(const std::string& name);
// `name` is a value before the first table, where only schema_version may stand.
std::string unknown_at_top(const std::string& name);

}  // namespace ddprun::config
