// The charts of a page as files of their own.
#pragma once

#include <string>
#include <vector>

#include "report/page.hpp"

namespace ddprun::report {

enum class Drawing { png, svg };

// Draws every chart of the page into <folder>/<number>-<title>.png or .svg, light, and returns the paths. The folder is
// made where it is not there. Python draws, with vl-convert-python: that of the environment variable
// DDPRUN_CHARTS_PYTHON, else the one that ddprun was built with. Throws Error(failure) with the reason and what to do;
// then no file is there that was not there before.
std::vector<std::string> write_drawings(const std::string& folder, const Page& page, const std::vector<Drawing>& kinds);

}  // namespace ddprun::report
