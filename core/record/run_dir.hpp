// The folder of one run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun::record {

// Creates <output>/<name>-<YYYYmmdd-HHMMSS> (local time; "-2", "-3", ... appended if the name exists) with its parents
// and returns its path. If the clock is behind that of an earlier run of this name, the folder gets that run's time and
// the next number, with a warning: the folder is always the newest of its name. Two processes never get the same
// folder. The launcher calls it once and passes the path to the ranks. Throws Error(failure) with `key`, which gives
// the output, path and errno's text.
std::string make_run_dir(const std::string& output, const std::string& name,
                         const std::string& key = "experiment.output");

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

// The run folders in `output`, newest first; with a name, only those of that name. None if it cannot be read.
std::vector<std::string> runs_in(const std::string& output, const std::optional<std::string>& name = std::nullopt);

// For an error about a folder that is not a run folder: "; did you mean <its newest run>?", or "" if it has no runs.
std::string run_hint(const std::string& folder);

// True if `dir` looks like the folder of a run: it has a config.toml and steps of rank 0.
bool is_run(const std::string& dir);
// A run folder as a user names it: "latest" is the newest run in the folder runs; any other path is returned as it is,
// and so is an existing folder of this name. Throws Error(usage) if the folder "runs" has no run.
std::string named_run(const std::string& path);
// The message for a folder that is not a run folder.
std::string no_run(const std::string& dir);

}  // namespace ddprun::record
