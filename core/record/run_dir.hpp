// The folder of one run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddprun::record {

// Creates <output>/<name>-<YYYYmmdd-HHMMSS> (local time; "-2", "-3", ... appended if the name exists) with its parents
// and returns its path. Two processes never get the same folder. The launcher calls it once and passes the path to the
// ranks. Throws Error(failure) with path and errno's text.
std::string make_run_dir(const std::string& output, const std::string& name);

// The path of a file in a run folder.
std::string file_in(const std::string& run_dir, const std::string& name);

// What the name of such a folder, without its path, is made of.
struct RunName {
  std::string name;
  std::string time;    // "20261122-082621"
  int64_t number = 1;  // 2, 3, ... if the name existed
};
// Nothing for other names.
std::optional<RunName> parse_run_name(std::string_view folder);

}  // namespace ddprun::record
