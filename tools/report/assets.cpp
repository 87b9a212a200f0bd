#include "tools/report/assets.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "ddprun/error.hpp"

namespace ddprun::report {
namespace {

std::string read(const std::string& name) {
  const std::string path = asset_path(name);
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(ExitCode::failure, "cannot read " + path + ": " + std::generic_category().message(errno) +
                                       "; ./ddprun in a clone of ddprun installs the drawing library");
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string asset_path(const std::string& name) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  return (program.parent_path().parent_path() / "share" / "ddprun" / name).string();
}

PageAssets page_assets() {
  return {read("page.css"), read("page.js"), read("vega.js")};
}

}  // namespace ddprun::report
