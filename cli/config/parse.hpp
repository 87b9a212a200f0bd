// Reads and parses a file within limits that protect stack and memory from malicious input.
#pragma once

#include <toml++/toml.h>

#include <string>

namespace ddprun::config {

// Throws Error(usage) with one line if the file is missing, a folder, unreadable or larger than 1 MiB. A pipe
// (/dev/stdin,
// <(...), a FIFO) is read once: this process and the processes that it starts read the same text again. In a pipe, no
// text is an error. The first call for a pipe sets an environment variable, so make it before the first thread.
std::string read_file(const std::string& path);

// Throws toml::parse_error, and Error(usage) for text that is nested too deeply; `where` starts the message.
toml::table parse_toml(const std::string& text, const std::string& where);

}  // namespace ddprun::config
