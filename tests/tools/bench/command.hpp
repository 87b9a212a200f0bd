// Starts `ddprun bench` for a test and keeps its output.
#pragma once

#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.h"
#include "support/paths.hpp"
#include "support/process.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::bench {

inline const std::string kFakes = testing::build_dir() + "/tests/fakes";
inline const std::string kPlugins = testing::build_dir() + "/lib/ddprun/" DDPRUN_PLUGIN_FOLDER;

// A private place for job folders, so that leftovers there come from this test.
class Place {
 public:
  Place() { std::filesystem::create_directory(folder_.path() / "tmp"); }

  // `variables`: environment variables, "NAME=value".
  testing::ProcessResult run(std::vector<std::string> arguments, std::vector<std::string> variables = {}) const {
    arguments.insert(arguments.begin(), BENCH_PROGRAM);
    arguments.insert(arguments.end(), {"--plugin-path", kPlugins, "--plugin-path", kFakes});
    const std::string temporary = (folder_.path() / "tmp").string();
    variables.push_back("XDG_RUNTIME_DIR=" + temporary);
    return testing::Process(arguments, variables).wait(std::chrono::seconds(60));
  }
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  bool is_clean() const { return std::filesystem::is_empty(folder_.path() / "tmp"); }

 private:
  testing::TempDir folder_;
};

// The lines of all tables, split into words, without headers.
inline std::vector<std::vector<std::string>> rows_of(const std::string& out) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> row{std::istream_iterator<std::string>(words), {}};
    if (!row.empty() && row[0] != "#" && row[0] != "size") rows.push_back(row);
  }
  return rows;
}

inline const std::vector<std::string> kQuick = {"-b", "64", "-e", "4K", "-f",       "8",
                                                "-n", "3",  "-w", "1",  "--rounds", "2"};

inline std::vector<std::string> quick(const std::vector<std::string>& more) {
  std::vector<std::string> all = kQuick;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace ddprun::bench
