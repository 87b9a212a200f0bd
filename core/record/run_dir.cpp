#include "record/run_dir.hpp"

#include <fmt/chrono.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "base/log.hpp"
#include "base/text.hpp"
#include "ddprun/error.hpp"

namespace ddprun::record {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kForm = "-00000000-000000";

bool ends_with_time(std::string_view text) {
  if (text.size() < kForm.size()) return false;
  text.remove_prefix(text.size() - kForm.size());
  return std::equal(kForm.begin(), kForm.end(), text.begin(),
                    [](char form, char c) { return form == '-' ? c == '-' : '0' <= c && c <= '9'; });
}

}  // namespace

std::string make_run_dir(const std::string& output, const std::string& name, const std::string& key) {
  const auto fail = [&](const std::string& path, int number) {
    throw Error(ExitCode::failure,
                key + ": cannot create folder " + path + ": " + std::generic_category().message(number));
  };
  std::error_code error;
  fs::create_directories(output, error);
  if (error) fail(output, error.value());

  RunName run{name, fmt::format("{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)))};
  if (const auto runs = runs_in(output, name); !runs.empty()) {
    const RunName newest = *parse_run_name(fs::path(runs.front()).filename().string());
    if (newest.time > run.time) {
      log::warning("the clock is behind that of " + runs.front() +
                   ": the new run folder gets the next number after it");
    }
    if (newest.time >= run.time) run = {name, newest.time, newest.number + 1};
  }
  // mkdir checks and creates the name atomically, so two processes never get the same folder.
  std::string path;
  do {
    path = file_in(output, name + "-" + run.time + (run.number == 1 ? "" : "-" + std::to_string(run.number)));
    ++run.number;
    errno = 0;
  } while (::mkdir(path.c_str(), 0777) != 0 && errno == EEXIST);
  if (errno != 0) fail(path, errno);
  return path;
}

std::optional<RunName> parse_run_name(std::string_view folder) {
  RunName parts;
  if (!ends_with_time(folder)) {
    const std::size_t dash = folder.rfind('-');
    if (dash == std::string_view::npos) return std::nullopt;
    const auto number = parse_number<int64_t>(folder.substr(dash + 1));
    folder = folder.substr(0, dash);
    if (!number || !ends_with_time(folder)) return std::nullopt;
    parts.number = *number;
  }
  const std::size_t at = folder.size() - kForm.size();
  parts.name = folder.substr(0, at);
  parts.time = folder.substr(at + 1);
  return parts;
}

std::vector<std::string> runs_in(const std::string& output, const std::optional<std::string>& name) {
  std::vector<std::tuple<std::string, int64_t, std::string>> found;
  std::error_code error;
  for (fs::directory_iterator at(output, error), end; !error && at != end; at.increment(error)) {
    const auto parts = parse_run_name(at->path().filename().string());
    if (parts && parts->name == name.value_or(parts->name)) {
      found.emplace_back(parts->time, parts->number, at->path().string());
    }
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> runs;
  for (auto& [time, number, path] : found) runs.push_back(std::move(path));
  return runs;
}

std::string run_hint(const std::string& folder) {
  const auto runs = runs_in(folder);
  return runs.empty() ? "" : "; did you mean " + runs.front() + "?";
}

std::string no_run(const std::string& dir) {
  const std::string hint = run_hint(dir);
  return dir + ": no folder of a run" +
         (hint.empty() ? "; give the run folder, which a training names at its end" : hint);
}

bool is_run(const std::string& dir) {
  return fs::is_regular_file(file_in(dir, "config.toml")) && fs::is_regular_file(file_in(dir, "steps-rank0.jsonl"));
}

std::string named_run(const std::string& path) {
  if (path != "latest" || fs::exists(path)) return path;
  const auto runs = runs_in("runs");
  const auto newest = std::find_if(runs.begin(), runs.end(), is_run);
  if (newest == runs.end())
    throw Error(ExitCode::usage, "latest: there is no run in the folder runs; name a run folder");
  return *newest;
}

std::string file_in(const std::string& run_dir, const std::string& name) {
  return (fs::path(run_dir) / name).string();
}

}  // namespace ddprun::record
