#include "tools/report/page.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/file.hpp"
#include "base/version.hpp"
#include "ddprun/error.hpp"
#include "tools/report/assets.hpp"

namespace ddprun::report {
namespace {

// Nothing is loaded or sent. Vega compiles its expressions to functions, which needs unsafe-eval.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:";

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += c;
    }
  }
  return safe;
}

// JSON within a script element: no text in it may end the element or start a comment.
std::string within_script(std::string json) {
  for (std::size_t at = json.find('<'); at != std::string::npos; at = json.find('<', at))
    json.replace(at, 1, "\\u003c");
  return json;
}

std::string element(const std::string& name, const std::string& text) {
  return text.empty() ? "" : "<" + name + ">" + escaped(text) + "</" + name + ">\n";
}

std::string paragraphs(const std::vector<std::string>& texts) {
  std::string html;
  for (const std::string& text : texts) html += element("p", text);
  return html;
}

// Figures stay on one line; the first column and long cells may wrap.
std::string cell(const std::string& name, const console::Table::Column& column, const std::string& text) {
  constexpr std::size_t kLong = 40;  // bytes
  const char* kind = column.align == console::Align::right ? " class=\"right\""
                     : text.size() > kLong                 ? " class=\"text\""
                                                           : "";
  constexpr std::string_view kSpace = "&ensp;";
  std::string indent;  // a browser leaves out leading spaces; those of a part show what it is a part of
  for (std::size_t i = 0; i < text.size() && text[i] == ' '; ++i) indent += kSpace;
  return "<" + name + kind + ">" + indent + escaped(text.substr(indent.size() / kSpace.size())) + "</" + name + ">";
}

std::string html_of(const console::Table& table) {
  const auto& columns = table.columns();
  std::string html = "<div class=\"wide\"><table>\n";
  const bool titled = std::any_of(columns.begin(), columns.end(), [](const auto& c) { return !c.title.empty(); });
  if (titled) {
    html += "<thead><tr>";
    for (const console::Table::Column& column : columns) html += cell("th", column, column.title);
    html += "</tr></thead>\n";
  }
  html += "<tbody>\n";
  for (const auto& row : table.rows()) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) html += cell("td", columns[i], row[i]);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string html_of(const Chart& chart, bool half) {
  return std::string("<figure class=\"") + (half ? "half" : "whole") + "\">\n<figcaption>" +
         element("h3", chart.title) + (chart.note.empty() ? "" : "<p class=\"note\">" + escaped(chart.note) + "</p>") +
         "</figcaption>\n<div class=\"drawing\" role=\"img\" aria-label=\"" + escaped(chart.title) + "\"></div>\n" +
         "<details><summary>The figures</summary>\n" + html_of(table_of(chart)) + "</details>\n</figure>\n";
}

// Which charts share a line: a half chart without a neighbour gets the full width.
std::vector<bool> halves_of(const std::vector<Chart>& charts) {
  std::vector<bool> halves(charts.size());
  for (std::size_t i = 0; i + 1 < charts.size(); ++i) {
    if (!charts[i].half || !charts[i + 1].half) continue;
    halves[i] = halves[i + 1] = true;
    ++i;
  }
  return halves;
}

std::string html_of(const Section& section) {
  std::string html = "<section>\n" + element("h2", section.title) + paragraphs(section.paragraphs);
  for (const TitledTable& table : section.tables) html += element("h3", table.title) + html_of(table.table);
  if (!section.charts.empty()) {
    html += "<div class=\"charts\">\n";
    const std::vector<bool> halves = halves_of(section.charts);
    for (std::size_t i = 0; i < halves.size(); ++i) html += html_of(section.charts[i], halves[i]);
    html += "</div>\n";
  }
  return html + "</section>\n";
}

constexpr const char* kChartsBegin = "<script type=\"application/json\" id=\"charts\">";
constexpr const char* kChartsEnd = "</script>";

std::string charts_of(const Page& page) {
  std::string all;
  for (const std::string& specification : specifications(page)) all += (all.empty() ? "" : ",\n") + specification;
  return R"({"light":)" + chart_theme(false) + R"(,"dark":)" + chart_theme(true) + ",\"charts\":[\n" + all + "]}";
}

}  // namespace

std::string to_html(const Page& page, const PageAssets& assets) {
  std::string html = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  html += std::string("<meta http-equiv=\"Content-Security-Policy\" content=\"") + kPolicy + "\">\n";
  html += element("title", page.title) + "<style>\n" + assets.style + "</style>\n</head>\n<body>\n<main>\n";
  html += element("h1", page.title) + paragraphs(page.paragraphs);
  for (const Section& section : page.sections) html += html_of(section);
  html += std::string("<footer><p>ddprun ") + version() + "</p></footer>\n</main>\n";
  html += kChartsBegin + within_script(charts_of(page)) + kChartsEnd + "\n";
  html += "<script>" + assets.vega + "</script>\n<script>\n" + assets.script + "</script>\n</body>\n</html>\n";
  return html;
}

std::vector<std::string> specifications(const Page& page) {
  std::vector<std::string> all;
  for (const Section& section : page.sections) {
    std::transform(section.charts.begin(), section.charts.end(), std::back_inserter(all), vega_lite);
  }
  return all;
}

std::vector<std::string> specifications_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string html{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = html.find(kChartsBegin), from = begin + std::string_view(kChartsBegin).size();
  try {
    if (begin == std::string::npos) throw Error(ExitCode::usage, path + ": not a page of ddprun");
    const auto charts = nlohmann::ordered_json::parse(html.substr(from, html.find(kChartsEnd, from) - from));
    std::vector<std::string> all;
    for (const auto& chart : charts.at("charts")) {
      chart.at("description").get<std::string>();  // standalone() needs it
      chart.at("usermeta").at("note").get<std::string>();
      all.push_back(chart.dump());
    }
    return all;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ExitCode::usage, path + ": not a page of ddprun: " + error.what());
  }
}

void write_page(const std::string& path, const Page& page) {
  replace_file(path, to_html(page, page_assets()));
}

}  // namespace ddprun::report
