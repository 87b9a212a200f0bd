#include "app/command_line.hpp"

namespace ddprun::app {
namespace {

// Quotes a word for a shell if it has characters that need it.
std::string shell_word(const std::string& text) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::string training_command(const Arguments& arguments) {
  std::string command = "ddprun --config " + shell_word(arguments.config);
  for (const std::string& path : arguments.plugin_paths) command += " --plugin-path " + shell_word(path);
  for (const std::string& override_ : arguments.overrides) {
    if (!override_.starts_with("checkpoint.resume=")) command += " --set " + shell_word(override_);
  }
  return arguments.tensorboard ? command + " --tensorboard" : command;
}

}  // namespace ddprun::app
