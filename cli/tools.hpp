// Subcommands that are separate programs: `ddprun bench` runs ddprun-bench from ddprun's own folder or from PATH.
#pragma once

#include <string>
#include <vector>

#include "ddprun/error.hpp"

namespace ddprun::app {

// The path of the program `ddprun-<name>`; "" if there is none.
std::string find_tool(const std::string& name);

// The names of all tools that were found, sorted.
std::vector<std::string> tool_names();

// One line per tool: its name, and the first line of its --help. Own tools are not started for that.
std::string describe_tools();

// Replaces this process with the tool (exec). Throws Error(failure) if it cannot be started.
[[noreturn]] void run_tool(const std::string& path, std::vector<std::string> arguments);

}  // namespace ddprun::app
