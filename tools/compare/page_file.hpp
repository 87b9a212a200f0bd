// The page of a comparison or of a sweep: report.html in its folder.
#pragma once

#include <string>

#include "tools/report/page.hpp"

namespace ddprun::compare {

class PageFile {
 public:
  // Checks before hours of runs that a page can be drawn. If not, one warning says why and what to do, and there will
  // be no page; the figures are still printed and saved.
  PageFile();

  void write(const std::string& folder, const report::Page& page) const;

 private:
  bool drawn_ = true;
};

}  // namespace ddprun::compare
