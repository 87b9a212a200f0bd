#include "ddprun/plugin/words.hpp"

#include <algorithm>
#include <cstddef>

namespace ddprun {
namespace {

// Optimal string alignment: Levenshtein's distance, with the swap of two neighbours as one step.
std::size_t word_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// Bytes of the character that begins `text`; 0 where that is no UTF-8 (RFC 3629: no overlong form, no surrogate,
// nothing beyond U+10FFFF) or a control character.
std::size_t printable_length(std::string_view text) {
  // By length; below are control characters and overlong forms.
  constexpr char32_t least[] = {0x20, 0xa0, 0x800, 0x10000};
  const auto lead = static_cast<unsigned char>(text[0]);
  if ((lead >= 0x80 && lead < 0xc0) || lead > 0xf4) return 0;
  const std::size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (length > text.size()) return 0;
  char32_t code = length == 1 ? lead : lead & (0x7fu >> length);
  for (const char next : text.substr(1, length - 1)) {
    const auto byte = static_cast<unsigned char>(next);
    if ((byte & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte & 0x3fu);
  }
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < least[length - 1] || code == 0x7f || code > 0x10ffff || surrogate ? 0 : length;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::size_t length = printable_length(text);
    line += length == 0 ? std::string_view("?") : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return line;
}

std::string quoted_list(const std::vector<std::string>& words, std::string_view last_separator) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? last_separator : ", ";
    text += '"' + words[i] + '"';
  }
  return text;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& names) {
  constexpr std::size_t longest_word = 100;  // a longer one is no typing error
  if (word.size() > longest_word) return "";
  const std::string* nearest = nullptr;
  std::size_t least = 0;
  for (const std::string& name : names) {
    if (name == word || name.size() > longest_word) continue;
    const std::size_t steps = word_distance(lower_case(word), lower_case(name));
    const std::size_t limit = std::max<std::size_t>(1, std::max(word.size(), name.size()) / 3);
    if (steps > limit || steps >= std::min(word.size(), name.size())) continue;
    if (word.size() == 3 && name.size() == 3 && lower_case(word)[0] != lower_case(name)[0]) continue;
    if (nearest == nullptr || steps < least) {
      nearest = &name;
      least = steps;
    }
  }
  return nearest == nullptr ? "" : " (did you mean \"" + *nearest + "\"?)";
}

std::string expected_one_of(const std::string& word, const std::vector<std::string>& names) {
  return "expected " + quoted_list(names) + did_you_mean(word, names);
}

}  // namespace ddprun
