#include "tools/report/report.hpp"

#include <algorithm>
#include <filesystem>

#include "base/file.hpp"
#include "base/log.hpp"
#include "ddprun/error.hpp"
#include "tools/lib/run.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::report {
namespace fs = std::filesystem;

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
  return run_page(tools::each(paths, tools::read_run_so_far));
}

std::string make(const std::vector<std::string>& paths, const std::string& out) {
  const bool one_folder = paths.size() == 1 && fs::is_directory(paths[0]);
  const fs::path place = !out.empty() ? fs::path(out) : (one_folder ? fs::path(paths[0]) : fs::path()) / "report.html";
  if (one_folder && fs::exists(fs::path(paths[0]) / "compare.json")) {
    const fs::path made = fs::path(paths[0]) / "report.html";
    if (!fs::exists(made)) {
      throw Error(ExitCode::usage, paths[0] + ": has no report.html: the drawing library was missing when it was made");
    }
    if (place != made) replace_file(place.string(), read_text(made.string()));
    return place.string();
  }
  const Page page = page_of(paths);
  write_page(place.string(), page);
  for (const std::string& notice : page.notices) log::always(notice);
  return place.string();
}

}  // namespace ddprun::report
