#include "cli/command_line.hpp"

#include <filesystem>

#include "base/file.hpp"
#include "checkpoint/folder.hpp"
#include "cli/console/program.hpp"

namespace ddprun::app {

using console::shell_word;

namespace {

// That of the run if the given one cannot be read again: a pipe, or /dev/stdin.
std::string config_to_read(const std::string& given, const std::string& run_dir) {
  std::error_code ignored;
  const bool again = !descriptor_of(given) && std::filesystem::is_regular_file(given, ignored);
  return again ? given : run_dir + "/config.toml";
}

}  // namespace

std::string how_to_resume(const Arguments& arguments, const std::string& run_dir) try {
  if (checkpoint::list_commits(run_dir + "/checkpoints").empty()) return "";
  std::string command = "to resume: ddprun --config " + shell_word(config_to_read(arguments.config, run_dir));
  const console::NodeOptions& nodes = arguments.nodes;
  const auto add = [&](const std::string& option, std::optional<int> value) {
    if (value) command += " " + option + " " + std::to_string(*value);
  };
  add("-n", nodes.nproc);
  add("--nnodes", nodes.nnodes);
  add("--node-rank", nodes.node_rank);
  if (!nodes.master_addr.empty()) command += " --master-addr " + shell_word(nodes.master_addr);
  add("--master-port", nodes.master_port);
  add("--max-restarts", nodes.max_restarts);
  for (const std::string& path : arguments.plugin_paths) command += " --plugin-path " + shell_word(path);
  for (const std::string& override_ : arguments.overrides) {
    const bool again = !override_.starts_with("checkpoint.resume=") && !override_.starts_with("faults.");
    if (again) command += " --set " + shell_word(override_);
  }
  if (arguments.tensorboard) command += " --tensorboard";
  return command + " --set " + shell_word("checkpoint.resume=" + run_dir);
} catch (const Error&) {
  return "";  // the folder cannot be read: the error of the run itself is reported
}

}  // namespace ddprun::app
