// Conversion between toml values and members of an Experiment.
#pragma once

#include <toml++/toml.h>

#include <string>

#include "cli/config/keys.hpp"

namespace ddprun::config {

// Sets the key's member from a value. Returns the error ("expected ..."), or "". Options are read one by one with
// read_option.
std::string read_value(const Key& key, const toml::node& node, Experiment& experiment);

// Sets one option of a key with options. Returns the error, or "".
std::string read_option(const Key& key, const std::string& option, const toml::node& node, Experiment& experiment);

// The member as a TOML value on one line; "" for an optional without value.
std::string value_text(const Key& key, Experiment& experiment);

// A value as the file writes it, for errors: on one line; tables and long texts are abbreviated ("a table"). `text` is
// the TOML that the node was parsed from: a float is shown as it is written there ("1e3"), or without it as the
// shortest number.
std::string node_text(const toml::node& node, const std::string& text = "");

}  // namespace ddprun::config
