// Reads a whole file, or its lines.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/text.hpp"

namespace ddprun::testing {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::string> read_lines(const std::filesystem::path& path) {
  return lines_of(read_file(path));
}

}  // namespace ddprun::testing
