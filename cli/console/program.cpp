#include "cli/console/program.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "base/subprocess.hpp"
#include "launch/failure.hpp"

namespace ddprun::console {

namespace fs = std::filesystem;

std::string this_program() {
  return fs::read_symlink("/proc/self/exe");
}

std::vector<std::string> program_folders() {
  std::vector<std::string> folders = {fs::path(this_program()).parent_path()};
  const char* path = std::getenv("PATH");
  std::istringstream entries(path == nullptr ? "" : path);
  for (std::string entry; std::getline(entries, entry, ':');) {
    if (!entry.empty()) folders.push_back(entry);
  }
  return folders;
}

std::string find_program(const std::string& name) {
  for (const std::string& folder : program_folders()) {
    const fs::path path = fs::path(folder) / name;
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

int run_program(const std::function<ExitCode()>& body) {
  ::signal(SIGUSR2, SIG_IGN);  // until a rank or the launcher handles it
  ExitCode code = ExitCode::ok;
  try {
    code = body();
    std::cout.flush();
    const bool flushed = std::fflush(stdout) == 0;
    // A disk may be full. Output that an earlier flush could not write has left the error of the stream.
    if (!flushed || std::ferror(stdout) != 0) {
      throw Error(ExitCode::failure, std::string("cannot write the output to stdout") +
                                         (flushed ? "" : std::string(": ") + std::strerror(errno)));
    }
  } catch (...) {
    const Error error = current_error();
    code = launch::report_failure(error.code(), error.what());
  }
  return static_cast<int>(code);
}

}  // namespace ddprun::console
