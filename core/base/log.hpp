// The log facade. Its header includes neither spdlog nor fmt, because torch carries an fmt of its own
// (docs/decisions.md).
#pragma once

#include <string>
#include <string_view>

namespace ddprun::log {

enum class Level { debug, info, warning, error };

// Messages below `level` are dropped. Any thread. The default is info.
void set_level(Level level);

// From now on every line goes into this file too (appended). Call it before other threads log. Throws Error(failure).
void also_to(const std::string& path);

// Writes one line to stderr, which is for chatter; results go to stdout. Any thread.
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

// A line that no level drops and that nothing stands before: how a process ends.
void always(std::string_view line);

// A line of level info without "ddprun: " before it: the progress of a training run.
void plain(std::string_view line);

}  // namespace ddprun::log
