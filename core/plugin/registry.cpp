#include "plugin/registry.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "ddprun/error.hpp"
#include "plugin/gate.hpp"
#include "plugin/search.hpp"

namespace ddprun::plugin {
namespace {

namespace fs = std::filesystem;

void append(std::vector<std::string>& folders, const std::string& folder) {
  if (folder.empty()) return;
  const std::string absolute = fs::absolute(folder).lexically_normal().string();
  if (std::find(folders.begin(), folders.end(), absolute) == folders.end()) folders.push_back(absolute);
}

void append_colon_separated(std::vector<std::string>& folders, const std::string& list) {
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    append(folders, list.substr(begin, end - begin));
    begin = end + 1;
  }
}

// One of gate.hpp's functions reads the table: in the child process that tries the library, then in this one.
template <typename Table>
const Table* open(const File& file, const Table* (*read)(const File&, const Library&)) {
  require_trusted(file);
  return read(file, Library::open(file, [&](const Library& library) { read(file, library); }));
}

}  // namespace

Listed inspect(const File& file) {
  Listed listed{file.kind, file.name, file.path.string(), {}};
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
  if (const char* const path = std::getenv("DDPRUN_PLUGIN_PATH")) append_colon_separated(folders, path);
  append(folders, (fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib" / "ddprun").string());
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
  for (const File& file : scan(folders_)) listed.push_back(inspect(file));
  return listed;
}

}  // namespace ddprun::plugin
