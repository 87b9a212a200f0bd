// Subcommands that are programs of their own: `ddprun bench` runs ddprun-bench, which lies in ddprun's own folder or on
// PATH.
#pragma once

#include <string>
#include <vector>

#include "ddprun/error.hpp"

namespace ddprun::app {

// The path of the program `ddprun-<name>`; "" where there is none.
std::string find_tool(const std::string& name);

// The names of all tools that can be found, sorted.
std::vector<std::string> tool_names();

// A line for each tool: its name, and the first line of what its --help prints.
std::string describe_tools();

// Becomes the tool, with these arguments. Throws Error(failure) where it cannot be started.
[[noreturn]] void run_tool(const std::string& path, std::vector<std::string> arguments);

}  // namespace ddprun::app
