#include "cli/config/document.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/file.hpp"

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

namespace {

// A descriptor or a FIFO gives its text once, and "ddprun", its engine and the ranks all read the config. The first
// process therefore keeps the text in a nameless file, which its children inherit under this variable: "FD PATH".
constexpr const char* kKept = "DDPRUN_CONFIG_KEPT";

// The nameless file with the text of `path`; "" if there is none.
std::string kept_copy(const std::string& path) {
  const char* const kept = std::getenv(kKept);
  const std::string text = kept == nullptr ? "" : kept;
  const std::size_t space = text.find(' ');
  return space != std::string::npos && text.substr(space + 1) == path ? "/proc/self/fd/" + text.substr(0, space) : "";
}

void keep_copy(const std::string& path, const std::string& text) {
  const int fd = ::memfd_create("config", 0);
  if (fd < 0) throw_file_error("keep a copy of", path, errno);
  OutputFile(path, ::dup(fd)).write(text);
  ::setenv(kKept, (std::to_string(fd) + " " + path).c_str(), 1);
}

}  // namespace

std::string read_file(const std::string& path) {
  if (path.empty()) throw Error(ExitCode::usage, "the configuration's path is empty; give a TOML file");
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw Error(ExitCode::usage, path + ": is a folder; give a TOML file");
  }
  const std::string kept = kept_copy(path);
  const bool is_descriptor = descriptor_of(path).has_value();
  const bool is_read_once = kept.empty() && (is_descriptor || std::filesystem::is_fifo(path, error));
  errno = 0;
  std::ifstream file(kept.empty() ? path : kept, std::ios::binary);
  std::string text(max_bytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() && file.fail()) {
    throw Error(ExitCode::usage, path + ": cannot be read (" + std::strerror(errno) + "); give a TOML file");
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > max_bytes) throw Error(ExitCode::usage, path + ": larger than 1 MiB; this is no configuration");
  if (is_read_once && text.empty()) {
    throw Error(ExitCode::usage,
                path + ": is empty; another process may have read it: give the configuration as a file");
  }
  if (is_read_once) keep_copy(path, text);
  return text;
}

}  // namespace ddprun::config
