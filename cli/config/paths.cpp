#include "cli/config/paths.hpp"

#include <filesystem>
#include <map>

#include "base/file.hpp"

namespace ddprun::config {
namespace {

namespace fs = std::filesystem;

// The members that hold a relative path, by key.
std::map<std::string, std::string*> relative_paths(Experiment& experiment) {
  std::map<std::string, std::string*> found;
  const auto add = [&](const char* key, std::string& value, bool is_path) {
    if (is_path && !value.empty() && fs::path(value).is_relative()) found[key] = &value;
  };
  const auto names_file = [](const std::string& value) { return value.find('/') != std::string::npos; };
  std::string& resume = experiment.checkpoint.resume;
  add("data.root", experiment.data.root, true);
  add("data.difficulty", experiment.data.difficulty, experiment.data.difficulty != "magnitude");
  add("model.weights", experiment.model.weights, true);
  add("checkpoint.resume", resume, resume != "latest" && resume != "auto");
  add("model.name", experiment.model.name, names_file(experiment.model.name));
  add("data.name", experiment.data.name, names_file(experiment.data.name));
  add("comm.backend", experiment.comm.backend, names_file(experiment.comm.backend));
  Options& options = experiment.comm.options;
  if (const auto tuning = options.find("tuning"); tuning != options.end())
    add("comm.options.tuning", tuning->second, true);
  return found;
}

}  // namespace

void find_from_config(Experiment& experiment, const Sources& sources) {
  const fs::path folder = fs::path(sources.file()).parent_path();
  if (folder.empty() || descriptor_of(sources.file())) return;
  for (const auto& [key, path] : relative_paths(experiment)) {
    const Place* place = sources.find(key);
    if (place != nullptr && !place->on_command_line()) *path = (folder / *path).string();
  }
}

void make_paths_absolute(Experiment& experiment) {
  for (const auto& [key, path] : relative_paths(experiment)) *path = fs::absolute(*path).string();
}

}  // namespace ddprun::config
