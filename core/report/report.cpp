#include "report/report.hpp"

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "record/read.hpp"
#include "report/bench_page.hpp"
#include "report/drawings.hpp"
#include "report/run_page.hpp"

namespace ddprun::report {
namespace {

namespace fs = std::filesystem;

fs::path place_of(const Request& request) {
  if (!request.out.empty()) return request.out;
  const bool one_folder = request.paths.size() == 1 && fs::is_directory(request.paths[0]);
  return one_folder ? fs::path(request.paths[0]) / "report.html" : fs::path("report.html");
}

}  // namespace

Page page_of(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (!fs::exists(path)) throw Error(ExitCode::usage, path + ": no such file or folder");
  }
  const auto folders =
      std::count_if(paths.begin(), paths.end(), [](const auto& path) { return fs::is_directory(path); });
  if (folders == 0) return bench_page(paths);
  if (static_cast<std::size_t>(folders) < paths.size()) {
    throw Error(ExitCode::usage,
                "ddprun report: expected either folders of runs or files of `ddprun bench --json`, not both");
  }
  std::vector<record::Run> runs;
  for (const std::string& path : paths) runs.push_back(record::read_run(path));
  return run_page(std::move(runs));
}

std::vector<std::string> write(const Request& request, const Page& page) {
  const fs::path place = place_of(request);
  if (fs::is_directory(place))
    throw Error(ExitCode::usage, "--out " + place.string() + ": is a folder; name a file in it");
  std::vector<Drawing> kinds;
  if (request.png) kinds.push_back(Drawing::png);
  if (request.svg) kinds.push_back(Drawing::svg);
  std::vector<std::string> paths = {place.string()};
  if (!kinds.empty()) {
    fs::path folder = place;
    folder.replace_filename(place.stem().string() + "-charts");
    const auto drawings = write_drawings(folder.string(), page, kinds);
    paths.insert(paths.end(), drawings.begin(), drawings.end());
  }
  write_page(place.string(), page);
  return paths;
}

}  // namespace ddprun::report
