#include "base/text.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

namespace ddprun {
namespace {

constexpr std::size_t kNarrowest = 20;
constexpr std::size_t kWidestLabel = 30;
constexpr std::string_view kGoodEnds = ",;:)]";
constexpr std::string_view kCopied = "to resume: ";

// UTF-8 characters, not bytes.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) < ' '; });
}

// Of the lines after the first.
std::size_t indent_of(std::string_view line) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", begin);
  if (gap != std::string_view::npos && gap < kWidestLabel) return line.find_first_not_of(' ', gap);
  return begin > 2 ? begin : begin + 2;  // a table's row without a label
}

// Where the first line of `text` ends: at a space after at most `most` characters, or at the first one.
std::size_t break_of(std::string_view text, std::size_t most) {
  if (width(text) <= most) return text.size();
  std::size_t any = text.size(), good = text.size();
  for (std::size_t at = text.find_first_not_of(' '); (at = text.find(' ', at)) != std::string_view::npos;
       at = std::min(text.find_first_not_of(' ', at), text.size())) {
    const std::size_t columns = width(text.substr(0, at));
    if (columns > most) return good != text.size() ? good : any != text.size() ? any : at;
    any = at;
    if (3 * columns >= 2 * most && kGoodEnds.find(text[at - 1]) != std::string_view::npos) good = at;
  }
  return good != text.size() ? good : any;
}

}  // namespace

std::string enumerated(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

std::string rank_list(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (std::size_t first = 0, next; first < ranks.size(); first = next) {
    for (next = first + 1; next < ranks.size() && ranks[next] == ranks[next - 1] + 1;) ++next;
    if (next - first == 2) next = first + 1;  // two are not a range
    parts.push_back(std::to_string(ranks[first]));
    if (next - first > 1) parts.back() += " to " + std::to_string(ranks[next - 1]);
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + enumerated(parts);
}

std::string wrapped(std::string_view line, int columns) {
  const auto most = static_cast<std::size_t>(std::max(columns, 0));
  const std::size_t printed = line.rfind('\r') + 1;  // what comes before is overwritten
  std::string text(line.substr(0, printed));
  line.remove_prefix(printed);
  if (most < kNarrowest || width(line) <= most || line.starts_with(kCopied) || has_control(line)) {
    return text + std::string(line);
  }
  std::size_t indent = indent_of(line);
  if (indent > most / 2) indent = 2;
  for (std::size_t margin = 0;; margin = indent) {
    const std::size_t end = break_of(line, most - margin);
    text += line.substr(0, end);
    const std::size_t next = line.find_first_not_of(' ', end);
    if (next == std::string_view::npos) return text;
    text += '\n' + std::string(indent, ' ');
    line.remove_prefix(next);
  }
}

std::string wrapped_lines(std::string_view text, int columns) {
  std::string lines;
  while (true) {
    const std::size_t end = text.find('\n');
    lines += wrapped(text.substr(0, end), columns) + '\n';
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

int columns_of(int fd) {
  if (::isatty(fd) != 1) return 0;
  winsize size{};
  const bool known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace ddprun
