// A plugin that exports more than its entry can conflict with another library in the process.
#include <doctest/doctest.h>

#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "support/text.hpp"

namespace {

// The symbols that a shared library exports, from nm of binutils.
std::vector<std::string> exports_of(const std::string& path) {
  const std::string command = "nm -D --defined-only --format=just-symbols '" + path + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  while (std::fgets(buffer, sizeof(buffer), pipe.get()) != nullptr) text += buffer;
  return ddprun::testing::lines_of(text);
}

}  // namespace

TEST_CASE("every comm and dataset plugin of this build exports its entry and nothing else") {
  std::istringstream paths(DDPRUN_PLUGIN_FILES);
  std::size_t comm = 0, dataset = 0;
  for (std::string path; std::getline(paths, path, ',');) {
    CAPTURE(path);
    const bool is_comm = path.find("/libddprun_comm_") != std::string::npos;
    ++(is_comm ? comm : dataset);
    CHECK(exports_of(path) == std::vector<std::string>{is_comm ? "ddprun_comm_plugin_v1" : "ddprun_dataset_plugin_v1"});
  }
  CHECK(comm >= 2);
  CHECK(dataset >= 1);
}
