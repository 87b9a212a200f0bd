#include "cli/console/program.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.hpp"
#include "base/log.hpp"
#include "launch/failure.hpp"
#include "launch/signals.hpp"

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

namespace {

// torchrun shows the errors in these files. Format: torch.distributed.elastic's ErrorHandler; without py_callstack,
// which torchrun would show instead of the message. torchrun takes the rank with the smallest time, in whole seconds,
// for the cause. So a rank that fails because of another rank writes a later time.
void write_torchrun_error(ExitCode code, const std::string& message) {
  const char* path = std::getenv("TORCHELASTIC_ERROR_FILE");
  if (path == nullptr || *path == '\0') return;
  const std::time_t time = std::time(nullptr) + (code == ExitCode::peer ? 1 : 0);
  const nlohmann::json error = {
      {"message", {{"message", message}, {"extraInfo", {{"timestamp", std::to_string(time)}}}}}};
  try {
    replace_file(path, error.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } catch (const Error& failed) {
    log::warning(failed.what());  // the message itself goes to stderr
  }
}

}  // namespace

std::string shell_word(const std::string& text) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

ExitCode report_failure(ExitCode code, const std::string& message) {
  write_torchrun_error(code, message);
  const char* job_dir = std::getenv("DDPRUN_JOB_DIR");
  const char* rank = std::getenv("DDPRUN_RANK");
  if (job_dir != nullptr && rank != nullptr) {
    launch::report_failure(job_dir, std::atoi(rank), code, message);
  } else if (code == ExitCode::usage || code == ExitCode::plugin) {
    log::always(message);  // the lines begin with the place in the config
  } else if (code == ExitCode::interrupted || code == ExitCode::terminated) {
    log::always("ddprun: " + message);
  } else {
    log::always("ddprun: failed: " + message);
  }
  return code;
}

std::string error_message(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? "out of memory" : error.what();
}

namespace {

// A disk may be full. Output that an earlier flush could not write has left the error of the stream.
void flush_stdout() {
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return;
  throw Error(ExitCode::failure, std::string("cannot write the output to stdout") +
                                     (flushed ? "" : std::string(": ") + std::strerror(errno)));
}

}  // namespace

int run_program(const std::function<ExitCode()>& body, std::string (*message_of)(const std::exception&)) {
  launch::ignore_signal(SIGUSR2);  // until a rank or the launcher handles it
  ExitCode code = ExitCode::ok;
  try {
    code = body();
    flush_stdout();
  } catch (const Error& error) {
    code = report_failure(error.code(), error.what());
  } catch (const std::exception& error) {
    code = report_failure(ExitCode::failure, message_of(error));
  }
  return static_cast<int>(code);
}

}  // namespace ddprun::console
