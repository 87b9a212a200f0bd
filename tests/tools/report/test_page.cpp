#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/process.hpp"
#include "support/read_file.hpp"
#include "support/text.hpp"
#include "tools/report/page.hpp"
#include "tools/report/some_page.hpp"

using namespace ddprun;
using ddprun::testing::contains;

namespace {

// Without Vega, which is long, and has texts of its own.
std::string html_of(const report::Page& page) {
  std::string html = report::to_html(page);
  const std::string vega = report::asset("vega.js");
  const std::size_t at = html.find(vega);
  REQUIRE(at != std::string::npos);
  return html.erase(at, vega.size());
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("no text of a page becomes markup, and no element ends early") {
  const std::string html = html_of(testing::some_page());
  CHECK_FALSE(contains(html, "<script>document"));
  CHECK(count(html, "</script>") == 3);
  CHECK(count(html, "<!--") == 0);
  CHECK(contains(html, "&lt;/script&gt;&lt;script&gt;"));
  CHECK(contains(html, "&quot;x&quot;"));
}

TEST_CASE("the charts are one JSON document, with both themes") {
  const std::string html = html_of(testing::some_page());
  const std::string begin = "<script type=\"application/json\" id=\"charts\">";
  const std::size_t from = html.find(begin) + begin.size();
  const auto charts = nlohmann::json::parse(html.substr(from, html.find("</script>", from) - from));
  CHECK(charts["charts"].size() == 10);
  CHECK(charts["charts"].size() == count(html, "class=\"drawing\""));
  CHECK(charts["charts"].size() == count(html, "<details>"));
  const auto &light = charts["light"]["range"]["category"], &dark = charts["dark"]["range"]["category"];
  CHECK(light.size() == dark.size());
  for (std::size_t i = 0; i < light.size(); ++i) CHECK(light[i] != dark[i]);
  CHECK(charts["dark"]["axis"]["labelFontSize"] == charts["light"]["axis"]["labelFontSize"]);
}

TEST_CASE("a part of a part is indented") {
  console::Table table({{"part"}, {"time"}});
  table.row({"communication", "3 ms"});
  table.row({"  gather", "1 ms"});
  report::Page page;
  page.sections.push_back({"Parts", {}, {{"Parts", table}}, {}});
  CHECK(contains(html_of(page), "<td>  gather</td>"));
}

TEST_CASE("a page without charts is valid") {
  report::Page page;
  page.title = "Empty";
  CHECK(contains(html_of(page), R"("charts":[]})"));
}

TEST_CASE("a page forbids all connections") {
  const std::string html = html_of(testing::some_page());
  CHECK(contains(html, "default-src 'none'"));
  CHECK_FALSE(contains(html, "src=\"http"));
}

TEST_CASE("without its share folder the program reports the missing file, and writes nothing") {
  const testing::TempDir folder;
  std::filesystem::create_directory(folder.path() / "bin");
  const auto program = folder.path() / "bin" / "page_tool", page = folder.path() / "page.html";
  std::filesystem::copy_file(PAGE_TOOL, program);
  testing::Process process({program.string(), page.string()}, {});
  const auto ended = process.wait();
  CHECK(ended.code == 1);
  CHECK(contains(ended.err, "cannot read " + (folder.path() / "share/ddprun/page.html").string() + ": No such file"));
  CHECK(contains(ended.err, "./ddprun"));
  CHECK_FALSE(std::filesystem::exists(page));
}
