#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "cli/commands.hpp"
#include "cli/console/program.hpp"

namespace ddprun::app {
namespace {

constexpr const char* kPrefix = "ddprun-";

}  // namespace

std::string find_tool(const std::string& name) {
  return name.find('/') == std::string::npos ? console::find_program(kPrefix + name) : "";
}

std::vector<std::string> tool_names() {
  namespace fs = std::filesystem;
  std::set<std::string> names;
  for (const std::string& folder : console::program_folders()) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      const std::string file = entry->path().filename();
      if (!file.starts_with(kPrefix)) continue;
      const std::string name = file.substr(std::strlen(kPrefix));
      if (!find_tool(name).empty()) names.insert(name);
    }
  }
  return {names.begin(), names.end()};
}

void run_tool(const std::string& path, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), path);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(path.c_str(), argv.data());
  throw Error(ExitCode::failure, "cannot start " + path + ": " + std::strerror(errno));
}

}  // namespace ddprun::app
