#include "tools/report/report.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/file.hpp"
#include "base/log.hpp"
#include "ddprun/error.hpp"
#include "tools/lib/run.hpp"

namespace ddprun::report {
namespace {

namespace fs = std::filesystem;

fs::path place_of(const Request& request) {
  if (!request.out.empty()) return request.out;
  const bool one_folder = request.paths.size() == 1 && fs::is_directory(request.paths[0]);
  return one_folder ? fs::path(request.paths[0]) / "report.html" : fs::path("report.html");
}

// The folder in which `ddprun compare` has written its page.
std::optional<std::string> page_made(const Request& request) {
  if (request.paths.size() != 1) return std::nullopt;
  const fs::path folder = request.paths[0];
  if (!fs::exists(folder / "compare.json")) return std::nullopt;
  fs::path page = folder / "report.html";
  if (!fs::exists(page)) {
    throw Error(ExitCode::usage,
                folder.string() + ": has no report.html: the drawing library was missing when it was made");
  }
  return page.string();
}

}  // namespace

Page page_of(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (!fs::exists(path)) throw Error(ExitCode::usage, path + ": no such file or folder");
  }
  const auto folders = std::ranges::count_if(paths, [](const auto& path) { return fs::is_directory(path); });
  if (folders == 0) return bench_page(paths);
  if (static_cast<std::size_t>(folders) < paths.size()) {
    throw Error(ExitCode::usage,
                "ddprun report: expected either folders of runs or files of `ddprun bench --json`, not both");
  }
  if (paths.size() == 1 && !fs::exists(fs::path(paths[0]) / "config.toml")) {
    const auto files = tools::read_collectives(paths[0]);
    if (!files.empty()) return collectives_page(paths[0], files);
  }
  std::vector<tools::Run> runs;
  for (const std::string& path : paths) runs.push_back(tools::read_run_so_far(path));
  return run_page(std::move(runs));
}

std::string make(const Request& request) {
  const fs::path place = place_of(request);
  if (const auto made = page_made(request)) {
    if (place != *made) replace_file(place.string(), read_text(*made));
    return place.string();
  }
  const Page page = page_of(request.paths);
  write_page(place.string(), page);
  for (const std::string& notice : page.notices) log::always(notice);
  return place.string();
}

}  // namespace ddprun::report
