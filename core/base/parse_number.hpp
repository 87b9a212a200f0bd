#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace ddprun {

// The number that the whole text is, such as "-7" or "2.5e-3"; nothing for any other text. As std::from_chars: without
// leading spaces and '+', in any locale; "inf" and "nan" are floating numbers.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace ddprun
