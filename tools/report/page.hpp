// A report as one self-contained HTML file: charts (drawn by Vega, which is in the file), tables, paragraphs; light or
// dark like the reader's system, readable on a phone. Texts may contain anything: they are escaped.
#pragma once

#include <string>
#include <vector>

#include "cli/console/table.hpp"
#include "tools/report/assets.hpp"
#include "tools/report/chart.hpp"

namespace ddprun::report {

struct TitledTable {
  std::string title;  // may be empty
  console::Table table;
};

// In this order: paragraphs, tables, charts (each with its table, folded, below it).
struct Section {
  std::string title;
  std::vector<std::string> paragraphs;
  std::vector<TitledTable> tables;
  std::vector<Chart> charts;
};

struct Page {
  std::string title;
  std::vector<std::string> paragraphs;  // below the title: the conclusion first
  std::vector<Section> sections;
  std::vector<std::string> notices{};  // for the terminal: what the user must not miss on the page
};

// The whole file.
std::string to_html(const Page& page, const PageAssets& assets);

// The specifications of the page's charts (vega_lite()), in order.
std::vector<std::string> specifications(const Page& page);
// The same from a page of to_html(). Throws Error(usage) with the path if the file cannot be read or is not such a
// page.
std::vector<std::string> specifications_in(const std::string& path);

// Writes to_html() with the installed assets to `path`, whole or not at all. Throws Error(failure) with path and
// reason, also if an asset is missing.
void write_page(const std::string& path, const Page& page);

}  // namespace ddprun::report
