// Reads text files; errors name the place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::record {

struct Line {
  int64_t number;  // from 1
  std::string text;
};

// The lines without newlines. A last line without newline is an Error(usage) with path and line number; with `growing`
// it is ignored.
std::vector<Line> lines_of(const std::string& path, bool growing);

}  // namespace ddprun::record
