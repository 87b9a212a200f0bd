#include "tools/report/page.hpp"

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <kainjow/mustache.hpp>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/file.hpp"
#include "base/text.hpp"
#include "cli/console/program.hpp"
#include "ddprun/error.hpp"

namespace ddprun::report {
namespace {

using kainjow::mustache::data;
using kainjow::mustache::object;

template <class Items, class Make>
data list_of(const Items& items, Make make) {
  data list(data::type::list);
  for (const auto& item : items) list.push_back(make(item));
  return list;
}

// A template leaves out what is false.
data optional(const std::string& text) {
  return text.empty() ? data(false) : data(text);
}

data paragraphs(std::vector<std::string> texts) {
  std::erase(texts, "");
  return list_of(texts, [](const std::string& text) { return data(text); });
}

// Figures stay on one line; the first column and long cells may wrap (page.css).
data cell(const console::Table::Column& column, const std::string& text) {
  constexpr std::size_t kLong = 40;  // bytes
  const std::string kind = column.align == console::Align::right ? "right" : text.size() > kLong ? "text" : "";
  return object{{"kind", optional(kind)}, {"text", text}};
}

data cells(const console::Table& table, const std::vector<std::string>& texts) {
  data list(data::type::list);
  for (std::size_t i = 0; i < texts.size(); ++i) list.push_back(cell(table.columns()[i], texts[i]));
  return object{{"cells", list}};
}

object filled(const console::Table& table) {
  std::vector<std::string> titles;
  for (const auto& column : table.columns()) titles.push_back(column.title);
  const bool titled = std::ranges::any_of(titles, [](const std::string& title) { return !title.empty(); });
  return {{"head", titled ? cells(table, titles) : data(false)},
          {"rows", list_of(table.rows(), [&](const auto& row) { return cells(table, row); })}};
}

data filled(const Section& section) {
  const data tables = list_of(section.tables, [](const TitledTable& one) {
    object table = filled(one.table);
    table["title"] = optional(one.title);
    return table;
  });
  const data charts = list_of(section.charts, [](const Chart& chart) {
    object figure = filled(table_of(chart));
    figure["width"] = chart.half ? "half" : "whole";
    figure["title"] = chart.title;
    figure["note"] = optional(chart.note);
    return figure;
  });
  return object{{"title", optional(section.title)},
                {"paragraphs", paragraphs(section.paragraphs)},
                {"tables", tables},
                {"charts", charts}};
}

// Both themes and all charts as JSON. Within a script element no text may end the element or start a comment.
std::string specifications(const Page& page) {
  auto all = nlohmann::ordered_json::parse(asset("theme.json")), dark = all.at("light");
  dark.merge_patch(all.at("dark"));
  all["dark"] = dark;
  all["charts"] = nlohmann::ordered_json::array();
  for (const Section& section : page.sections) {
    for (const Chart& chart : section.charts) all["charts"].push_back(nlohmann::ordered_json::parse(vega_lite(chart)));
  }
  return boost::algorithm::replace_all_copy(all.dump(), "<", "\\u003c");
}

}  // namespace

std::string asset(const std::string& name) {
  const std::filesystem::path program = console::this_program();
  const std::string path = (program.parent_path().parent_path() / "share" / "ddprun" / name).string();
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(ExitCode::failure, "cannot read " + path + ": " + std::generic_category().message(errno) +
                                       "; ./ddprun in a clone of ddprun installs the drawing library");
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string to_html(const Page& page) {
  kainjow::mustache::mustache html(asset("page.html"));
  return html.render(
      object{{"title", page.title},
             {"paragraphs", paragraphs(page.paragraphs)},
             {"sections", list_of(page.sections, [](const Section& section) { return filled(section); })},
             {"table", asset("table.html")},
             {"version", version()},
             {"specifications", specifications(page)},
             {"style", asset("page.css")},
             {"script", asset("page.js")},
             {"vega", asset("vega.js")}});
}

void write_page(const std::string& path, const Page& page) {
  if (std::filesystem::is_directory(path)) throw Error(ExitCode::usage, path + ": is a folder; name a file in it");
  replace_file(path, to_html(page));
}

}  // namespace ddprun::report
