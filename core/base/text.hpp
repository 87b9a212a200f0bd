// Text: numbers in it, and lists as English writes them.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

// ddprun's version, "0.1.0", from project() in CMakeLists.txt.
const char* version();

// The number that the whole text is, such as "-7" or "2.5e-3"; nothing for any other text. As std::from_chars: without
// leading spaces and '+', in any locale; "inf" and "nan" are floating numbers.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The shortest text that reads back as the same double.
std::string exact_text(double value);

// In lower case, with zeros in front up to this number of digits: "0000beef".
std::string hex(uint64_t value, int digits);

// "a", "a and b", "a, b and c"; empty for no words.
std::string enumerated(const std::vector<std::string>& words);

// "rank 1", "ranks 1, 4 to 7 and 9", for ascending numbers.
std::string rank_list(const std::vector<int>& ranks);

// The columns of the terminal `fd`, 80 if they are not known; 0 for any other file.
int columns_of(int fd);

}  // namespace ddprun
