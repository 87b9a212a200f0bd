// A report as one HTML file that needs nothing else: charts (drawn by Vega, which is in the file), tables, paragraphs;
// light and dark as the reader's system is, readable on a phone. Texts may hold anything: they are escaped.
#pragma once

#include <string>
#include <vector>

#include "console/table.hpp"
#include "tools/report/assets.hpp"
#include "tools/report/chart.hpp"

namespace ddprun::report {

struct TitledTable {
  std::string title;  // may be empty
  console::Table table;
};

// In this order: paragraphs, tables, charts (each with its table folded below it).
struct Section {
  std::string title;
  std::vector<std::string> paragraphs;
  std::vector<TitledTable> tables;
  std::vector<Chart> charts;
};

struct Page {
  std::string title;
  std::vector<std::string> paragraphs;  // below the title: the answer first
  std::vector<Section> sections;
};

// The whole file.
std::string to_html(const Page& page, const PageAssets& assets);

// The specifications of the page's charts (vega_lite()), in their order.
std::vector<std::string> specifications(const Page& page);
// Those of a page that to_html() made. Throws Error(usage) with the path where the file cannot be read or is none.
std::vector<std::string> specifications_in(const std::string& path);

// to_html() with the assets that came with ddprun, written over `path`, whole or not at all. Throws Error(failure) with
// path and reason, also where an asset is not there.
void write_page(const std::string& path, const Page& page);

}  // namespace ddprun::report
