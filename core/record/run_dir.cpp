#include "record/run_dir.hpp"

#include <sys/stat.h>

#include <cerrno>
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

}  // namespace

std::string make_run_dir(const std::string& output, const std::string& name) {
  std::error_code error;
  std::filesystem::create_directories(output, error);
  if (error) throw_file_error("create folder", output, error.value());

  const std::string base = (std::filesystem::path(output) / (name + "-" + timestamp())).string();
  std::string path = base;
  // mkdir says whether the name was free, in one step: that is what keeps two processes apart.
  for (int suffix = 2; ::mkdir(path.c_str(), 0777) != 0; ++suffix) {
    if (errno != EEXIST) throw_file_error("create folder", path, errno);
    path = base + "-" + std::to_string(suffix);
  }
  return path;
}

}  // namespace ddprun::record
