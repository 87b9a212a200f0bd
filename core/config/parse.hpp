// Reads and parses a file within limits that protect stack and memory from malicious input.
#pragma once

#include <toml++/toml.h>

#include <string>

namespace ddprun::config {

// Throws Error(usage) with one line if the file is missing, a folder, unreadable or larger than 1 MiB.
std::string read_file(const std::string& path);

// Throws toml::parse_error, and Error(usage) for text that is nested too deeply; `where` starts the message.
toml::table parse_toml(const std::string& text, const std::string& where);

}  // namespace ddprun::config
