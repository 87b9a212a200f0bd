// Files that come with ddprun for its reports: share/ddprun/ next to the program's bin/.
#pragma once

#include <string>

namespace ddprun::report {

// The contents of these files.
struct PageAssets {
  std::string style;   // page.css
  std::string script;  // page.js
  std::string vega;    // vega.js: Vega, Vega-Lite and vega-embed, of the Python package vl-convert-python
};

// The path of such a file, even if it does not exist.
std::string asset_path(const std::string& name);

// Throws Error(failure) that names a missing file and says how to install it.
PageAssets page_assets();

}  // namespace ddprun::report
