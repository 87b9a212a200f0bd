// A report as one self-contained HTML file: charts (drawn by Vega, which is in the file), tables, paragraphs; light or
// dark like the reader's system, readable on a phone. Texts may contain anything: they are escaped.
#pragma once

#include <string>
#include <vector>

#include "cli/console/table.hpp"
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

// The content of a file in share/ddprun/, next to the program's bin/: the templates of pages and charts, and vega.js
// (Vega, Vega-Lite and vega-embed, of the Python package vl-convert-python). Throws Error(failure) that names a missing
// file and says how to install it.
std::string asset(const std::string& name);

// The whole file. Throws as asset().
std::string to_html(const Page& page);

// Writes to_html() to `path`, whole or not at all. Throws Error(failure) with path and reason, also if an asset is
// missing, and Error(usage) if the path is a folder.
void write_page(const std::string& path, const Page& page);

}  // namespace ddprun::report
