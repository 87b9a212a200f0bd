// Charts as files of their own.
#pragma once

#include <string>
#include <vector>

namespace ddprun::report {

enum class Drawing { png, svg };

// Draws charts, given as specifications (vega_lite()), into <folder>/<number>-<title>.png or .svg, light, and returns
// the paths. The folder is made where it is not there. Python draws, with vl-convert-python: that of the environment
// variable DDPRUN_CHARTS_PYTHON, else the one that ddprun was built with. Throws Error(failure) with the reason and
// what to do; then no file is there that was not there before.
std::vector<std::string> write_drawings(const std::string& folder, const std::vector<std::string>& specifications,
                                        const std::vector<Drawing>& kinds);

}  // namespace ddprun::report
