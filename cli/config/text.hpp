// How values and words are formatted in errors, documentation and to_toml(). Without toml types.
#pragma once

#include <chrono>
#include <string>

namespace ddprun::config {

// The shortest decimal text that reads back as the same double; also a TOML number when finite.
std::string number_text(double value);

// Seconds as a duration: "30s", "0.5s"; reads back exactly.
std::string duration_text(double seconds);
// For a duration of the config, which is in seconds.
std::chrono::milliseconds milliseconds(double seconds);

// A TOML basic string with quotes and escapes, always one line.
std::string quoted(const std::string& text);
// A key as TOML writes it: bare if possible.
std::string key_text(const std::string& key);

// True if text holds a control character, which would break a line of the log, a path or a terminal.
bool has_control(const std::string& text);
// True if text is valid UTF-8, which TOML requires.
bool is_utf8(const std::string& text);
// The text, quoted if it would break a line.
std::string one_line(const std::string& text);

}  // namespace ddprun::config
