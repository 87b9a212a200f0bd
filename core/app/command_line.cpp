#include "app/command_line.hpp"

#include "console/program.hpp"

namespace ddprun::app {

using console::shell_word;

std::string training_command(const Arguments& arguments) {
  std::string command = "ddprun --config " + shell_word(arguments.config);
  for (const std::string& path : arguments.plugin_paths) command += " --plugin-path " + shell_word(path);
  for (const std::string& override_ : arguments.overrides) {
    if (!override_.starts_with("checkpoint.resume=")) command += " --set " + shell_word(override_);
  }
  return arguments.tensorboard ? command + " --tensorboard" : command;
}

}  // namespace ddprun::app
