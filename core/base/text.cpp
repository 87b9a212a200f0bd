#include "base/text.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdio>

namespace ddprun {

const char* version() {
  return DDPRUN_VERSION;
}

std::string exact_text(double value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string hex(uint64_t value, int digits) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%0*" PRIx64, digits, value);
  return text.data();
}

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

int columns_of(int fd) {
  if (::isatty(fd) != 1) return 0;
  winsize size{};
  const bool known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace ddprun
