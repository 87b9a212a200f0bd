// ddprun/plugin/dataset_options.hpp: reads `data.options`: text to checked values. What it refuses it refuses with a
// InvalidDataset that names the key and says what would be right.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ddprun/plugin/dataset_plugin.hpp"
#include "ddprun/plugin/words.hpp"

namespace ddprun {

// The options of one data set. Every function throws InvalidDataset that names the key.
class DatasetOptions {
 public:
  // Refuses keys that are not in `known`. `context` must outlive it.
  DatasetOptions(std::string name, const DatasetContext& context, const std::vector<std::string>& known)
      : name_(std::move(name)), context_(context) {
    for (const auto& [key, value] : context.options) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      refuse(key, "data set \"" + name_ + "\" has no such option; " + expected_one_of(key, known));
    }
  }

  bool given(const std::string& key) const { return context_.options.contains(key); }

  std::string text(const std::string& key, const std::string& fallback) const {
    const auto found = context_.options.find(key);
    return found == context_.options.end() ? fallback : found->second;
  }

  // One of `words`.
  std::string choice(const std::string& key, const std::string& fallback, const std::vector<std::string>& words) const {
    std::string word = text(key, fallback);
    if (std::find(words.begin(), words.end(), word) == words.end()) refuse(key, expected_one_of(word, words));
    return word;
  }

  // "true" or "false".
  bool flag(const std::string& key, bool fallback) const {
    return choice(key, fallback ? "true" : "false", {"true", "false"}) == "true";
  }

  // A whole number in [low, high].
  int64_t integer(const std::string& key, int64_t fallback, int64_t low, int64_t high) const {
    if (!given(key)) return fallback;
    const auto value = parse<int64_t>(context_.options.at(key));
    if (value && *value >= low && *value <= high) return *value;
    refuse(key, "expected a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  }

  // A number in [low, high].
  double number(const std::string& key, double fallback, double low, double high) const {
    return given(key) ? checked_number(key, context_.options.at(key), low, high) : fallback;
  }

  // Numbers with commas between them ("0.49, 0.48, 0.45"), each in [low, high].
  std::vector<double> numbers(const std::string& key, const std::vector<double>& fallback, double low,
                              double high) const {
    if (!given(key)) return fallback;
    std::vector<double> values;
    for (const std::string& part : list(key, "")) values.push_back(checked_number(key, part, low, high));
    return values;
  }

  // Words with commas between them, without the spaces around them. An empty one is an error.
  std::vector<std::string> list(const std::string& key, const std::string& fallback) const {
    const std::string all = text(key, fallback);
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= all.size();) {
      const std::size_t comma = std::min(all.find(',', at), all.size());
      parts.push_back(trimmed(std::string_view(all).substr(at, comma - at)));
      if (parts.back().empty()) refuse(key, "expected one value, or several with commas between them");
      at = comma + 1;
    }
    return parts;
  }

  // `seed`, or else the experiment's seed.
  uint64_t seed() const {
    if (!given("seed")) return context_.seed;
    return static_cast<uint64_t>(integer("seed", 0, 0, std::numeric_limits<int64_t>::max()));
  }

  // For a data set that reads no files.
  void refuse_root() const {
    if (context_.root.empty()) return;
    throw InvalidDataset("root", "data set \"" + name_ + "\" is computed and reads no files; leave root out");
  }

  [[noreturn]] static void refuse(const std::string& key, const std::string& reason) {
    throw InvalidDataset("options." + key, reason);
  }

 private:
  // All of the text as a number, or nothing.
  template <class T>
  static std::optional<T> parse(const std::string& text) {
    T value{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end) return std::nullopt;
    return value;
  }

  static double checked_number(const std::string& key, const std::string& text, double low, double high) {
    const auto value = parse<double>(text);
    if (value && *value >= low && *value <= high) return *value;
    refuse(key, "expected a number from " + shortest(low) + " to " + shortest(high));
  }

  static std::string shortest(double value) {
    std::array<char, 32> text;
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
  }

  static std::string trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
  }

  std::string name_;
  const DatasetContext& context_;
};

}  // namespace ddprun
