// The page of a comparison or of a sweep: report.html in its folder.
#pragma once

#include <string>

#include "tools/report/page.hpp"

namespace ddprun::compare {

class PageFile {
 public:
  // Looks whether all is there that a page is drawn with, before hours of runs. Where it is not, one line of the log
  // says so and what to do, and there will be no page: the figures are printed and kept nevertheless.
  PageFile();

  void write(const std::string& folder, const report::Page& page) const;

 private:
  bool drawn_ = true;
};

}  // namespace ddprun::compare
