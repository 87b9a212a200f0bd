// `ddprun report`: from the paths on its command line to files.
#pragma once

#include <string>
#include <vector>

#include "tools/report/page.hpp"

namespace ddprun::report {

struct Request {
  std::vector<std::string> paths;  // folders of runs, one folder of a comparison, or files of `ddprun bench --json`
  std::string out;                 // the page; empty: report.html in the one folder that was named, else here
  bool png = false, svg = false;   // each chart as a file, too
};

// The page of what the paths hold. Throws Error(usage) with the path where there is nothing that a report can show, and
// where some are runs and some are not.
Page page_of(const std::vector<std::string>& paths);

// Writes the page and the drawings that are asked for, these into the folder <page's name without .html>-charts beside
// it, and returns the paths: the page's first. Either all are written or, with an Error(failure), none.
std::vector<std::string> write(const Request& request, const Page& page);

// write() of page_of(). The folder of a comparison or a sweep has its page already: that is drawn, and copied to
// `out`.
std::vector<std::string> make(const Request& request);

}  // namespace ddprun::report
