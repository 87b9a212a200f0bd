#include "record/run_dir.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "base/file.hpp"

namespace ddprun::record {
namespace {

std::string timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local)};
}

constexpr std::string_view kForm = "-00000000-000000";

bool ends_with_time(std::string_view text) {
  if (text.size() < kForm.size()) return false;
  text.remove_prefix(text.size() - kForm.size());
  return std::equal(kForm.begin(), kForm.end(), text.begin(),
                    [](char form, char c) { return form == '-' ? c == '-' : '0' <= c && c <= '9'; });
}

}  // namespace

std::string make_run_dir(const std::string& output, const std::string& name) {
  std::error_code error;
  std::filesystem::create_directories(output, error);
  if (error) throw_file_error("create folder", output, error.value());

  const std::string base = (std::filesystem::path(output) / (name + "-" + timestamp())).string();
  std::string path = base;
  // mkdir checks and creates the name atomically, so two processes never get the same folder.
  for (int suffix = 2; ::mkdir(path.c_str(), 0777) != 0; ++suffix) {
    if (errno != EEXIST) throw_file_error("create folder", path, errno);
    path = base + "-" + std::to_string(suffix);
  }
  return path;
}

std::optional<RunName> parse_run_name(std::string_view folder) {
  RunName parts;
  if (!ends_with_time(folder)) {
    const std::size_t dash = folder.rfind('-');
    if (dash == std::string_view::npos) return std::nullopt;
    const char* const end = folder.data() + folder.size();
    const auto [stop, fault] = std::from_chars(folder.data() + dash + 1, end, parts.number);
    folder = folder.substr(0, dash);
    if (fault != std::errc() || stop != end || !ends_with_time(folder)) return std::nullopt;
  }
  const std::size_t at = folder.size() - kForm.size();
  parts.name = folder.substr(0, at);
  parts.time = folder.substr(at + 1);
  return parts;
}

std::string file_in(const std::string& run_dir, const std::string& name) {
  return (std::filesystem::path(run_dir) / name).string();
}

}  // namespace ddprun::record
