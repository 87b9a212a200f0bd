// The folder of one run.
#pragma once

#include <string>

namespace ddprun::record {

// Creates <output>/<name>-<YYYYmmdd-HHMMSS> (local time; "-2", "-3", ... appended while the name is taken) with its
// parents and returns its path. Two processes never get the same folder. The launcher calls it once and tells the
// ranks. Throws Error(failure) with path and errno.
std::string make_run_dir(const std::string& output, const std::string& name);

// Writes a whole file aside in the same folder and renames it over `path`: a reader sees the old text or the new one.
// Throws Error(failure) with path and errno; no temporary file stays.
void write_file(const std::string& path, const std::string& text);

}  // namespace ddprun::record
