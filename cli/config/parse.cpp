#include "cli/config/document.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace ddprun::config {
namespace {

constexpr std::size_t max_bytes = 1 << 20;

// toml++ 3.3 frees nested tables recursively and does not limit the depth of dotted keys: about 10,000 dots overflow
// the stack. No experiment needs nearly as many.
constexpr std::ptrdiff_t max_dots = 1000;

}  // namespace

toml::table parse_toml(const std::string& text, const std::string& where) {
  if (std::count(text.begin(), text.end(), '.') > max_dots) {
    throw Error(ExitCode::usage, where + ": more than " + std::to_string(max_dots) + " dots; this is no configuration");
  }
  return toml::parse(text, std::string_view(where));
}

std::string read_file(const std::string& path) {
  if (path.empty()) throw Error(ExitCode::usage, "the configuration's path is empty; give a TOML file");
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw Error(ExitCode::usage, path + ": is a folder; give a TOML file");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(max_bytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() && file.fail()) {
    throw Error(ExitCode::usage, path + ": cannot be read (" + std::strerror(errno) + "); give a TOML file");
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > max_bytes) throw Error(ExitCode::usage, path + ": larger than 1 MiB; this is no configuration");
  return text;
}

}  // namespace ddprun::config
