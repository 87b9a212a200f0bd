// A file to text, and text to toml values, within bounds that keep hostile input from the stack and the memory.
#pragma once

#include <toml++/toml.h>

#include <string>

namespace ddprun::config {

// Throws Error(usage) with one line when the file is missing, a folder, unreadable or larger than 1 MiB.
std::string read_file(const std::string& path);

// Throws toml::parse_error, and Error(usage) for text that is too deep to be a configuration; `where` opens the
// message.
toml::table parse_toml(const std::string& text, const std::string& where);

}  // namespace ddprun::config
