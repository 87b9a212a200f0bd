// Charts as separate files.
#pragma once

#include <string>
#include <vector>

namespace ddprun::report {

enum class Drawing { png, svg };

// Draws charts, given as specifications (vega_lite()), into <folder>/<number>-<title>.png or .svg with light colours,
// and returns the paths. Creates the folder if it is missing. It runs Python with vl-convert-python: the Python of the
// environment variable DDPRUN_CHARTS_PYTHON, else the one that ddprun was built with. Throws Error(failure) with the
// reason and advice, and then leaves no new file.
std::vector<std::string> write_drawings(const std::string& folder, const std::vector<std::string>& specifications,
                                        const std::vector<Drawing>& kinds);

}  // namespace ddprun::report
