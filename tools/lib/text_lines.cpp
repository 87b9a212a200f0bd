#include "tools/lib/text_lines.hpp"

#include "base/file.hpp"
#include "ddprun/error.hpp"

namespace ddprun::record {

std::vector<Line> lines_of(const std::string& path, bool growing) {
  const std::string text = read_text(path);
  std::vector<Line> lines;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back({static_cast<int64_t>(lines.size()) + 1, text.substr(begin, end - begin)});
  }
  if (begin < text.size() && !growing) {
    throw Error(ExitCode::usage, path + ":" + std::to_string(lines.size() + 1) +
                                     ": the line is cut short: the run was killed, or its disk was full");
  }
  return lines;
}

}  // namespace ddprun::record
