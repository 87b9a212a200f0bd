// Files that come with ddprun for its reports: share/ddprun/ beside the program's bin/.
#pragma once

#include <string>

namespace ddprun::report {

// Their texts.
struct PageAssets {
  std::string style;   // page.css
  std::string script;  // page.js
  std::string vega;    // vega.js: Vega, Vega-Lite and vega-embed, of the Python package vl-convert-python
};

// The path of such a file, whether it is there or not.
std::string asset_path(const std::string& name);

// Throws Error(failure) that names the file that is not there and says how to get it.
PageAssets page_assets();

}  // namespace ddprun::report
