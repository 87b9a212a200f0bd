// From a plugin's name to its file, and whether that file may be trusted.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plugin/registry.hpp"

namespace ddprun::plugin {

inline constexpr std::array kKinds = {Kind::comm, Kind::model, Kind::dataset};

// A file that, by its name, is a plugin.
struct File {
  Kind kind = Kind::comm;
  std::string name;  // the <name> of libddprun_comm_<name>.so; empty where a path names a file of another form
  std::filesystem::path path;
};

// Reads kind and name from a file's name; nothing if it has not the form of a plugin's.
std::optional<File> parse(const std::filesystem::path& path);

// Every plugin of the folders, in their order, sorted by name within one. Folders that do not exist are empty.
std::vector<File> scan(const std::vector<std::string>& folders);

// The names of the folders' plugins of one kind, each once.
std::vector<std::string> names_of(Kind kind, const std::vector<std::string>& folders);

// "/a, /b (no such folder)"; "nowhere" for none.
std::string places_of(const std::vector<std::string>& folders);

// The file that name (a path where it holds a '/') stands for. Throws Error(plugin) that says where it looked, what
// there is, and the nearest name.
File find(Kind kind, const std::string& name, const std::vector<std::string>& folders);

// Throws Error(plugin) if the file, or a folder that holds it or a link to it, can be written by everyone: whoever can
// replace a plugin runs code in our process. Group-writable is the owner's choice and accepted.
void require_trusted(const File& file);

}  // namespace ddprun::plugin
