// The folder of one run.
#pragma once

#include <string>

namespace ddprun::record {

// Creates <output>/<name>-<YYYYmmdd-HHMMSS> (local time; "-2", "-3", ... appended while the name is taken) with its
// parents and returns its path. Two processes never get the same folder. The launcher calls it once and tells the
// ranks. Throws Error(failure) with path and errno's words.
std::string make_run_dir(const std::string& output, const std::string& name);

}  // namespace ddprun::record
