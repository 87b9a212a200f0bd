// Between a toml value and the member of an Experiment that its key sets.
#pragma once

#include <toml++/toml.h>

#include <string>

#include "config/keys.hpp"

namespace ddprun::config {

// Sets the key's member from a value. Returns what is wrong ("expected ..."), or "" when all is well. Options are read
// one by one: read_option.
std::string read_value(const Key& key, const toml::node& node, Experiment& experiment);

// Sets one option of a key that holds options. Returns what is wrong, or "".
std::string read_option(const Key& key, const std::string& option, const toml::node& node, Experiment& experiment);

// The member as a TOML value, on one line; "" for an optional that has none.
std::string value_text(const Key& key, Experiment& experiment);

// A value as the file has it, for errors: on one line; tables and long texts are only named ("a table").
std::string node_text(const toml::node& node);

}  // namespace ddprun::config
