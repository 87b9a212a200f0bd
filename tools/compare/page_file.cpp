#include "tools/compare/page_file.hpp"

#include "ddprun/error.hpp"
#include "base/log.hpp"

namespace ddprun::compare {

PageFile::PageFile() {
  try {
    report::page_assets();
  } catch (const Error& error) {
    drawn_ = false;
    log::warning(std::string("there will be no report.html: ") + error.what());
  }
}

void PageFile::write(const std::string& folder, const report::Page& page) const {
  if (drawn_) report::write_page(folder + "/report.html", page);
}

}  // namespace ddprun::compare
