#include "tools/compare/comparison.hpp"

#include <algorithm>
#include <boost/algorithm/string/trim.hpp>
#include <cmath>
#include <optional>

#include "base/text.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun::compare {
namespace {

[[noreturn]] void refuse(const std::string& text, const std::string& what) {
  throw Error(ExitCode::usage, "--gate '" + text + "': " + what + "; example: 'b/a <= 1.02'");
}

std::optional<std::size_t> find_variant(const std::string& word, const std::vector<std::string>& names) {
  const auto found = static_cast<std::size_t>(std::ranges::find(names, word) - names.begin());
  if (found < names.size()) return found;
  const auto number = parse_number<std::size_t>(word);
  if (number && *number >= 1 && *number <= names.size()) return *number - 1;
  return std::nullopt;
}

// Names can contain slashes: the division is the slash with a variant on both sides.
bool read_ratio(const std::string& text, const std::vector<std::string>& names, Gate& gate) {
  for (std::size_t slash = text.find('/'); slash != std::string::npos; slash = text.find('/', slash + 1)) {
    const auto over = find_variant(boost::algorithm::trim_copy(text.substr(0, slash)), names);
    const auto under = find_variant(boost::algorithm::trim_copy(text.substr(slash + 1)), names);
    if (!over || !under) continue;
    gate.over = *over;
    gate.under = *under;
    return true;
  }
  return false;
}

}  // namespace

Gate parse_gate(const std::string& text, const std::vector<std::string>& names) {
  Gate gate;
  gate.text = text;
  const std::size_t sign = text.find_first_of("<>");
  if (sign == std::string::npos) refuse(text, "expected <= or >=");
  gate.at_most = text[sign] == '<';
  const std::size_t after = sign + (text[sign + 1] == '=' ? 2 : 1);
  const auto bound = parse_number<double>(boost::algorithm::trim_copy(text.substr(after)));
  if (!bound || !std::isfinite(*bound) || *bound <= 0) refuse(text, "expected a number above 0 after the sign");
  gate.bound = *bound;
  if (!read_ratio(boost::algorithm::trim_copy(text.substr(0, sign)), names, gate)) {
    refuse(text, "expected VARIANT/VARIANT before the sign, of " + quoted_list(names) + " or their numbers from 1");
  }
  if (gate.over == gate.under) refuse(text, "a variant is compared with itself");
  return gate;
}

bool holds(const Gate& gate, const Ratio& ratio) {
  return gate.at_most ? ratio.high <= gate.bound : ratio.low >= gate.bound;
}

}  // namespace ddprun::compare
