// The log functions. This header includes neither spdlog nor fmt, because torch has its own fmt (docs/decisions.md).
#pragma once

#include <string>
#include <string_view>

namespace ddprun::log {

enum class Level { debug, info, warning, error };

// Drops messages below `level`. Thread-safe. The default is info.
void set_level(Level level);

// Also appends every later line to this file. Call it before other threads log. Throws Error(failure).
void also_to(const std::string& path);

// Writes one line to stderr; results go to stdout. Thread-safe.
void write(Level level, std::string_view message);

inline void debug(std::string_view message) {
  write(Level::debug, message);
}
inline void info(std::string_view message) {
  write(Level::info, message);
}
inline void warning(std::string_view message) {
  write(Level::warning, message);
}
inline void error(std::string_view message) {
  write(Level::error, message);
}

// Draws or redraws the status line, the last line of a terminal, such as a progress bar. `fd` is the terminal, or a
// pipe to it; errors of the terminal are ignored. A line of the log erases the status line first. Thread-safe.
void draw_status(int fd, std::string_view text);
void erase_status();
bool status_shown();

// A line that is always written, without prefix: how a process ended.
void always(std::string_view line);

// A line of level info without the prefix "ddprun: ": the progress of a training run.
void plain(std::string_view line);

}  // namespace ddprun::log
