// `ddprun report`: from its command line to files.
#pragma once

#include <string>
#include <vector>

#include "tools/report/page.hpp"

namespace ddprun::report {

struct Request {
  std::vector<std::string> paths;  // folders of runs, one folder of a comparison, or files of `ddprun bench --json`
  std::string out;                 // the page; empty: report.html in the given folder if it is one, else here
  bool png = false, svg = false;   // also write each chart as a file
};

// The page for the paths. Throws Error(usage) with the path if it has nothing to report, or if runs and other files are
// mixed.
Page page_of(const std::vector<std::string>& paths);

// Writes the page and the requested drawings, and returns the paths, the page first. The drawings go into the folder
// <page's name without .html>-charts next to the page. Writes all or, with an Error(failure), none.
std::vector<std::string> write(const Request& request, const Page& page);

// Writes page_of() with write(). The folder of a comparison or a sweep already has its page: it is drawn, and copied to
// `out`.
std::vector<std::string> make(const Request& request);

}  // namespace ddprun::report
