#include "plugin/search.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ddprun/error.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::plugin {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSuffix = ".so";

std::string prefix_of(Kind kind) {
  return std::string("libddprun_") + name_of(kind) + "_";
}

void require_private(const File& file, const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    refuse(file, "not found: " + path.string() + ": " + std::strerror(errno));
  }
  const mode_t mode = status.st_mode;
  // In a sticky folder such as /tmp, other users can add files but cannot replace one.
  const bool sticky_folder = S_ISDIR(mode) && (mode & S_ISVTX) != 0;
  if ((mode & S_IWOTH) == 0 || sticky_folder) return;
  refuse(file, "refused: " + path.string() + " can be written by everyone; run chmod o-w " + path.string());
}

}  // namespace

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::comm: return "comm";
    case Kind::model: return "model";
    case Kind::dataset: break;
  }
  return "dataset";
}

std::optional<File> parse(const fs::path& path) {
  if (path.extension() != kSuffix) return std::nullopt;
  const std::string name = path.stem().string();
  for (const Kind kind : kKinds) {
    const std::string prefix = prefix_of(kind);
    if (name.starts_with(prefix) && name.size() > prefix.size()) return File{kind, name.substr(prefix.size()), path};
  }
  return std::nullopt;
}

std::vector<File> scan(const std::vector<std::string>& folders) {
  std::vector<File> files;
  for (const std::string& folder : folders) {
    std::vector<fs::path> paths;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      paths.push_back(entry->path());
    }
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) {
      if (const auto file = parse(path)) files.push_back(*file);
    }
  }
  return files;
}

std::vector<std::string> names_of(Kind kind, const std::vector<std::string>& folders) {
  std::vector<std::string> names;
  for (const File& file : scan(folders)) {
    const bool known = std::find(names.begin(), names.end(), file.name) != names.end();
    if (file.kind == kind && !known) names.push_back(file.name);
  }
  return names;
}

std::string places_of(const std::vector<std::string>& folders) {
  std::string text;
  for (const std::string& folder : folders) {
    std::error_code ignored;
    text += (text.empty() ? "" : ", ") + folder + (fs::is_directory(folder, ignored) ? "" : " (no such folder)");
  }
  return text.empty() ? "nowhere" : text;
}

File find(Kind kind, const std::string& name, const std::vector<std::string>& folders) {
  const std::string what = std::string(name_of(kind)) + " plugin ";
  std::error_code ignored;
  if (name.find('/') != std::string::npos) {
    const fs::path path = fs::absolute(name).lexically_normal();
    if (!fs::is_regular_file(path, ignored)) {
      throw Error(ExitCode::plugin, what + path.string() + ": not found: there is no such file");
    }
    const auto file = parse(path);
    return File{kind, file && file->kind == kind ? file->name : "", path};
  }
  for (const std::string& folder : folders) {
    const fs::path path = fs::path(folder) / (prefix_of(kind) + name + kSuffix);
    if (fs::is_regular_file(path, ignored)) return File{kind, name, path};
  }
  const auto names = names_of(kind, folders);
  throw Error(ExitCode::plugin, what + '"' + name + "\": not found: looked in " + places_of(folders) + "; " +
                                    (names.empty() ? std::string("no ") + name_of(kind) + " plugin is there"
                                                   : "there is " + quoted_list(names, " and ")) +
                                    did_you_mean(name, names));
}

void refuse(const File& file, const std::string& why) {
  throw Error(ExitCode::plugin, std::string(name_of(file.kind)) + " plugin " + file.path.string() + ": " + why);
}

void require_trusted(const File& file) {
  std::error_code error;
  const fs::path target = fs::canonical(file.path, error);
  if (error) refuse(file, "cannot be loaded: " + error.message());
  require_private(file, target);
  require_private(file, target.parent_path());
  if (target != file.path) require_private(file, file.path.parent_path());
}

}  // namespace ddprun::plugin
