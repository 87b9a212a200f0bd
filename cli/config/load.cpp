#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/file.hpp"
#include "cli/config/document.hpp"

namespace ddprun::config {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_bytes = 1 << 20;

// The text of a file. Throws Error(usage) with one line if it cannot be read.
std::string read_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (const int error = file ? read_all(file.get(), text, max_bytes + 1) : errno; error != 0) {
    throw Error(ExitCode::usage, path + ": cannot be read (" + std::strerror(error) + "); give a TOML file");
  }
  if (text.size() > max_bytes) throw Error(ExitCode::usage, path + ": larger than 1 MiB; this is no configuration");
  return text;
}

void read_all(const Document& document, Loaded& loaded, Errors& errors) {
  for (const auto& [name, written] : document.written()) {
    const std::string wrong = read_value(written, loaded.experiment);
    if (!wrong.empty()) errors.add_key(written.location, name, wrong);
    loaded.sources.locations[name] = written.location;
  }
}

void check_missing(const Sources& sources, Errors& errors) {
  for (const Key& key : keys()) {
    if (key.example.empty() || sources.given(key.path) || !errors.sound(key.table())) continue;
    errors.add_key({.where = sources.file}, key.path,
                   "missing; give it under [" + key.table() + "], as in " + key.example);
  }
}

// The members that hold a relative path, by key.
std::map<std::string, std::string*> relative_paths(Experiment& experiment) {
  std::map<std::string, std::string*> found;
  const auto add = [&](const char* key, std::string& value, bool is_path) {
    if (is_path && !value.empty() && fs::path(value).is_relative()) found[key] = &value;
  };
  const auto names_file = [](const std::string& value) { return value.find('/') != std::string::npos; };
  std::string& resume = experiment.checkpoint.resume;
  add("data.root", experiment.data.root, true);
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

// A relative path in the file is relative to the file's folder. One that --set or a pipe gives stays as it is: relative
// to the current folder.
void find_from_config(Experiment& experiment, const Sources& sources) {
  const fs::path folder = fs::path(sources.file).parent_path();
  if (folder.empty() || descriptor_of(sources.file)) return;
  for (const auto& [key, path] : relative_paths(experiment)) {
    const Location* location = sources.find(key);
    if (location != nullptr && !location->on_command_line()) *path = (folder / *path).string();
  }
}

// `exp.toml:12:9: comm.algorithm = "rign": what`
std::string error_line(const Location& location, const std::string& key, const std::string& what) {
  return location.where + ": " + key + (location.value.empty() ? "" : " = " + location.value) + ": " + what;
}

}  // namespace

Loaded load(const std::string& path, const std::vector<std::string>& overrides, std::optional<int64_t> ranks,
            const Typed& typed) {
  return load_text(read_file(path), path, overrides, ranks, typed);
}

Loaded load_text(const std::string& text, const std::string& path, const std::vector<std::string>& overrides,
                 std::optional<int64_t> ranks, const Typed& typed) {
  Errors errors;
  Document document(text, path, errors);
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    const auto other = typed.find(overrides[i]);
    document.apply(overrides[i], other == typed.end() ? "--set " + one_line(overrides[i]) : other->second,
                   static_cast<int64_t>(i));
  }

  Loaded loaded{{}, {path, {}}};
  read_all(document, loaded, errors);
  check_missing(loaded.sources, errors);
  Experiment& experiment = loaded.experiment;
  if (experiment.experiment.name.empty()) experiment.experiment.name = fs::path(path).stem().string();
  if (!experiment.train.epochs && !experiment.train.steps) experiment.train.epochs = 1;
  check_together(loaded.experiment, ranks, loaded.sources, errors);
  errors.raise();
  find_from_config(loaded.experiment, loaded.sources);
  return loaded;
}

void make_paths_absolute(Experiment& experiment) {
  for (const auto& [key, path] : relative_paths(experiment)) *path = fs::absolute(*path).string();
}

void Errors::add(const Location& location, const std::string& text, ExitCode code) {
  lines_.emplace(location.order, Error(code, location.where + ": " + text));
}

void Errors::add_key(const Location& location, const std::string& key, const std::string& what, ExitCode code) {
  lines_.emplace(location.order, Error(code, error_line(location, key, what)));
  unsound_.insert(key);
}

void Errors::raise() const {
  if (lines_.empty()) return;
  std::string message;
  for (const auto& [order, error] : lines_) message += (message.empty() ? "" : "\n") + std::string(error.what());
  throw Error(lines_.begin()->second.code(), message);
}

const Location* Sources::find(const std::string& key) const {
  const auto found = locations.find(key);
  return found == locations.end() ? nullptr : &found->second;
}

Location location_of(const Sources& sources, const std::string& key) {
  if (const Location* location = sources.find(key)) return *location;
  Location location{.where = sources.file};
  if (const Key* known = find_key(key); known != nullptr && !known->holds_options() && !known->computed_default) {
    Experiment defaults;
    location.value = value_text(*known, defaults) + " (the default)";
  }
  return location;
}

std::string error(const Sources& sources, const std::string& key, const std::string& what) {
  return error_line(location_of(sources, key), key, what);
}

std::vector<std::string> unused_keys(const Experiment& experiment, const Sources& sources) {
  std::vector<std::string> names;
  for (const auto& [name, location] : sources.locations) {
    const Key* key = find_key(name);
    if (key != nullptr && key->user != nullptr && !key->user(experiment)) names.push_back(name);
  }
  return names;
}

}  // namespace ddprun::config
