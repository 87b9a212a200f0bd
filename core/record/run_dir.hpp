// The folder of one run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddprun::record {

// Creates <output>/<name>-<YYYYmmdd-HHMMSS> (local time; "-2", "-3", ... appended while the name is taken) with its
// parents and returns its path. Two processes never get the same folder. The launcher calls it once and tells the
// ranks. Throws Error(failure) with path and errno's words.
std::string make_run_dir(const std::string& output, const std::string& name);

// The path of a file in a run folder.
std::string file_in(const std::string& run_dir, const std::string& name);

// What the name of such a folder, without its path, is made of.
struct RunName {
  std::string name;
  std::string time;    // "20261122-082621"
  int64_t number = 1;  // 2, 3, ... where the name was taken
};
// Nothing where it is named otherwise.
std::optional<RunName> parse_run_name(std::string_view folder);

}  // namespace ddprun::record
