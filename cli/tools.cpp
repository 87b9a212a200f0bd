#include "cli/tools.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>

#include "cli/console/own_tools.hpp"
#include "cli/console/program.hpp"
#include "launch/child.hpp"

namespace ddprun::app {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* kPrefix = "ddprun-";
constexpr std::chrono::seconds kPatience{2};  // for a program that does not answer --help

// The first line of the program's output, or what came before the deadline.
std::string first_line(const UniqueFd& pipe, Clock::time_point deadline) {
  std::string text;
  std::array<char, 4096> buffer;
  while (text.find('\n') == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd entry{pipe.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&entry, 1, static_cast<int>(left.count())) <= 0) break;
    const ssize_t got = ::read(pipe.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::string find_tool(const std::string& name) {
  return name.find('/') == std::string::npos ? console::find_program(kPrefix + name) : "";
}

namespace {

std::string description_of(const std::string& name) {
  const std::string path = find_tool(name);
  const auto folder = fs::path(console::this_program()).parent_path();
  const std::string_view own = console::about_tool(name);
  if (!own.empty() && fs::path(path).parent_path() == folder) return std::string(own);
  const launch::Child child = launch::spawn({path, "--help"}, launch::environment_with({}));
  const std::string line = first_line(child.out, Clock::now() + kPatience);
  ::kill(-child.pid, SIGKILL);
  while (::waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return line;
}

}  // namespace

std::vector<std::string> tool_names() {
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

std::string describe_tools() {
  constexpr std::size_t column = 30;  // where CLI11's descriptions begin
  std::string text;
  for (const std::string& name : tool_names()) {
    std::string line = "  " + name;
    line.resize(std::max(column, line.size() + 1), ' ');
    text += line + description_of(name) + '\n';
  }
  return text;
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
