#include "tools/compare/page_file.hpp"

#include "base/log.hpp"
#include "ddprun/error.hpp"

namespace ddprun::compare {

PageFile::PageFile() {
  try {
    report::page_assets();
  } catch (const Error& error) {
    drawn_ = false;
    log::warning(std::string("report.html will not be written: ") + error.what());
  }
}

void PageFile::write(const std::string& folder, const report::Page& page) const {
  if (drawn_) report::write_page(folder + "/report.html", page);
}

}  // namespace ddprun::compare
