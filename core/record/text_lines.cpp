#include "record/text_lines.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ddprun/error.hpp"

namespace ddprun::record {

std::string text_of(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw Error(ExitCode::usage, path + ": is a folder");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) throw Error(ExitCode::usage, path + ": " + std::strerror(errno));
  return text;
}

std::vector<Line> lines_of(const std::string& path, bool growing) {
  const std::string text = text_of(path);
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
