// Finds the file of a plugin, and checks whether it may be trusted.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plugin/registry.hpp"

namespace ddprun::plugin {

inline constexpr std::array kKinds = {Kind::comm, Kind::model, Kind::dataset};

// A file whose name is that of a plugin.
struct File {
  Kind kind = Kind::comm;
  std::string name;  // the <name> of libddprun_comm_<name>.so; empty for a path to a file with another kind of name
  std::filesystem::path path;
};

// Parses kind and name from a file name; nothing if it is not a plugin's.
std::optional<File> parse(const std::filesystem::path& path);

// Every plugin of the folders, in their order, sorted by name within a folder. A missing folder counts as empty.
std::vector<File> scan(const std::vector<std::string>& folders);

// The names of the folders' plugins of one kind, each once.
std::vector<std::string> names_of(Kind kind, const std::vector<std::string>& folders);

// "/a, /b (no such folder)"; "nowhere" for none.
std::string places_of(const std::vector<std::string>& folders);

// The file for a name, or for a path (with a '/'). Throws Error(plugin) with the searched folders, the plugins there
// and the nearest name.
File find(Kind kind, const std::string& name, const std::vector<std::string>& folders);

// Throws Error(plugin): "comm plugin <path>: <why>".
[[noreturn]] void refuse(const File& file, const std::string& why);

// Throws Error(plugin) if everyone can write the file, a folder that holds it, or a link to it: a plugin's code runs in
// our process. Group-writable files are accepted, as the owner's choice.
void require_trusted(const File& file);

}  // namespace ddprun::plugin
