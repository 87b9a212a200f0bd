#include "plugin/registry.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <utility>

#include "ddprun/error.hpp"
#include "plugin/library.hpp"
#include "plugin/search.hpp"

namespace ddprun::plugin {
namespace {

namespace fs = std::filesystem;

void append(std::vector<std::string>& folders, const std::string& folder) {
  if (folder.empty()) return;
  fs::path absolute = fs::absolute(folder).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();  // "/a/" is /a
  const auto is_same = [&](const std::string& other) {
    std::error_code ignored;
    return other == absolute || fs::equivalent(other, absolute, ignored);
  };
  if (std::none_of(folders.begin(), folders.end(), is_same)) folders.push_back(absolute.string());
}

void append_colon_separated(std::vector<std::string>& folders, const std::string& list) {
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ':');) append(folders, part);
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The folder of the user's own plugins, as the XDG Base Directory Specification says; empty if there is no home.
std::string user_folder() {
  fs::path data = variable("XDG_DATA_HOME");
  if (!data.is_absolute()) data = fs::path(variable("HOME")) / ".local/share";
  return data.is_absolute() ? data / "ddprun/plugins" / DDPRUN_PLUGIN_FOLDER : fs::path();
}

// That of libddprun.so or libddprun_c.so, also in a user's program; otherwise of this program, which contains this code.
fs::path own_prefix() {
  Dl_info info{};
  fs::path file = fs::read_symlink("/proc/self/exe");
  if (::dladdr(reinterpret_cast<void*>(&own_prefix), &info) != 0 && info.dli_fname != nullptr) {
    const std::string name = fs::path(info.dli_fname).filename();
    if (name.starts_with("libddprun.so") || name.starts_with("libddprun_c.so")) file = fs::canonical(info.dli_fname);
  }
  return file.parent_path().parent_path();
}

// One of library.hpp's functions reads the table: in the child process that tries the library, then in this one.
template <typename Table>
const Table* open(const File& file, const Table* (*read)(const File&, const Library&)) {
  require_trusted(file);
  return read(file, Library::open(file, [&](const Library& library) { read(file, library); }));
}

}  // namespace

Listed inspect(const File& file) {
  Listed listed{file.kind, file.name, file.path.string(), {}, {}};
  try {
    switch (file.kind) {
      case Kind::comm: listed.content = open(file, comm_table); break;
      case Kind::model: listed.content = open(file, model_table); break;
      case Kind::dataset: listed.content = open(file, dataset_table); break;
    }
  } catch (const Error& refusal) {
    listed.content = std::string(refusal.what());
  }
  return listed;
}

Registry::Registry(std::vector<std::string> folders) {
  for (const std::string& folder : folders) append(folders_, folder);
}

Registry Registry::standard(const std::vector<std::string>& plugin_path_option) {
  std::vector<std::string> folders;
  for (const std::string& option : plugin_path_option) append_colon_separated(folders, option);
  for (const std::string& folder : folders) {
    if (!fs::is_directory(folder)) throw Error(ExitCode::usage, "--plugin-path " + folder + ": no such folder");
  }
  append_colon_separated(folders, variable("DDPRUN_PLUGIN_PATH"));
  append(folders, own_prefix() / "lib/ddprun" / DDPRUN_PLUGIN_FOLDER);
  append(folders, user_folder());
  append(folders, "/usr/local/lib/ddprun/" DDPRUN_PLUGIN_FOLDER);
  return Registry(folders);
}

CommPlugin Registry::comm(const std::string& name) const {
  const File file = find(Kind::comm, name, folders_);
  return {file.path.string(), open(file, comm_table)};
}

ModelPlugin Registry::model(const std::string& name, const std::string& torch_version, int cxx11_abi) const {
  const File file = find(Kind::model, name, folders_);
  const auto* const table = open(file, model_table);
  require_torch(file, *table, torch_version, cxx11_abi);
  return {file.path.string(), table};
}

DatasetPlugin Registry::dataset(const std::string& name) const {
  const File file = find(Kind::dataset, name, folders_);
  return {file.path.string(), open(file, dataset_table)};
}

std::vector<std::string> Registry::names(Kind kind) const {
  return names_of(kind, folders_);
}

std::string Registry::places() const {
  return places_of(folders_);
}

std::vector<Listed> Registry::list() const {
  std::vector<Listed> listed;
  std::map<std::pair<Kind, std::string>, std::string> first;  // what find() returns
  for (const File& file : scan(folders_)) {
    const auto found = first.find({file.kind, file.name});
    if (found != first.end()) {
      listed.push_back({file.kind, file.name, file.path.string(), found->second, {}});
      continue;
    }
    std::error_code ignored;
    if (fs::is_regular_file(file.path, ignored)) first[{file.kind, file.name}] = file.path.string();
    listed.push_back(inspect(file));
  }
  return listed;
}

}  // namespace ddprun::plugin
