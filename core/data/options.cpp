#include "data/options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "base/words.hpp"

namespace ddprun::data {
namespace {

// All of the text as a number, or nothing.
template <class T>
std::optional<T> parse(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::string shortest(double value) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

}  // namespace

OptionReader::OptionReader(const DataOptions& data, const std::vector<std::string>& known) : data_(data) {
  for (const auto& [key, value] : data.options) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    throw DatasetError("options." + key, "data set \"" + data.name + "\" has no such option; expected " +
                                             quoted_list(known) + did_you_mean(key, known));
  }
}

std::string OptionReader::text(const std::string& key, const std::string& fallback) const {
  const auto found = data_.options.find(key);
  return found == data_.options.end() ? fallback : found->second;
}

int64_t OptionReader::integer(const std::string& key, int64_t fallback, int64_t low, int64_t high) const {
  if (!given(key)) return fallback;
  const auto value = parse<int64_t>(data_.options.at(key));
  if (!value || *value < low || *value > high) {
    throw DatasetError("options." + key,
                       "expected a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return *value;
}

double OptionReader::number(const std::string& key, double fallback, double low, double high) const {
  if (!given(key)) return fallback;
  const auto value = parse<double>(data_.options.at(key));
  if (!value || !(*value >= low && *value <= high)) {
    throw DatasetError("options." + key, "expected a number from " + shortest(low) + " to " + shortest(high));
  }
  return *value;
}

uint64_t OptionReader::seed() const {
  if (!given("seed")) return data_.seed;
  return static_cast<uint64_t>(integer("seed", 0, 0, std::numeric_limits<int64_t>::max()));
}

void refuse_root(const DataOptions& data) {
  if (data.root.empty()) return;
  throw DatasetError("root", "data set \"" + data.name + "\" is computed and reads no files; leave root out");
}

}  // namespace ddprun::data
