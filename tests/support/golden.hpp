// Whole texts of a command, compared with a file of the repository.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "support/paths.hpp"
#include "support/read_file.hpp"

namespace ddprun::testing {

// `name`: a file in tests/. With DDPRUN_UPDATE_GOLDEN in the environment, the file is written instead: read the
// difference before you commit it.
inline void check_golden(const std::string& name, const std::string& text) {
  const std::string path = source_dir() + "/tests/" + name;
  if (std::getenv("DDPRUN_UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << text;
  std::istringstream lines(text);
  int number = 0;
  for (const std::string& expected : read_lines(path)) {
    std::string line;
    std::getline(lines, line);
    ++number;
    REQUIRE_MESSAGE(line == expected, path << ":" << number << ": expected \"" << expected << "\"");
  }
  CHECK_MESSAGE(text == read_file(path), path << " has other lines at its end");
}

}  // namespace ddprun::testing
