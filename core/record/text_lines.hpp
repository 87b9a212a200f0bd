// Text files read so that a fault names its place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ddprun::record {

struct Line {
  int64_t number;  // from 1
  std::string text;
};

// The whole file. Throws Error(usage) with path and errno's words.
std::string text_of(const std::string& path);

// Its lines, without newlines. A last line without a newline is an Error(usage) with path and line, or left out where
// the file is `growing`.
std::vector<Line> lines_of(const std::string& path, bool growing);

}  // namespace ddprun::record
