// How values and words are spelled, in errors, documents and to_toml(). No toml type.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ddprun::config {

// The shortest decimal text that reads back as the same double; also a TOML number when finite.
std::string number_text(double value);

// Seconds as a duration: "30s", "0.5s"; reads back exactly.
std::string duration_text(double seconds);
// Seconds from "30s", "500ms", "2m", "1.5h"; none for anything else.
std::optional<double> read_duration(const std::string& text);

// A TOML basic string, quotes and escapes included; always one line.
std::string quoted(const std::string& text);
// A key as TOML spells it: bare where it can be.
std::string key_text(const std::string& key);

// True when text holds a control character: it would break a line of the log, a path or a terminal.
bool has_control(const std::string& text);
// True when text is UTF-8, as all of TOML is.
bool is_utf8(const std::string& text);
// The text, quoted where it would break a line.
std::string one_line(const std::string& text);

}  // namespace ddprun::config
