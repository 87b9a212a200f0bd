#include "tools/compare/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/parse_number.hpp"
#include "ddprun/error.hpp"
#include "tools/compare/variant.hpp"

namespace ddprun::compare {
namespace {

constexpr int kDrawsPerTrial = 100;  // attempts to find a new one

struct Range {
  double low = 0, high = 0;
  bool whole = false;
};

bool is_whole(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// The range that a value stands for, if any.
std::optional<Range> range_of(const std::string& value, const std::string& varied) {
  const std::size_t dots = value.find("..");
  if (dots == std::string::npos || value.find_first_of("\"'[{") != std::string::npos) return std::nullopt;
  const std::string first = value.substr(0, dots), last = value.substr(dots + 2);
  const auto low = parse_number<double>(first), high = parse_number<double>(last);
  if (!low || !high) return std::nullopt;
  if (*low > 0 && *low < *high && std::isfinite(*high)) return Range{*low, *high, is_whole(first) && is_whole(last)};
  throw Error(ExitCode::usage, "--vary " + varied + ": expected a range LOW..HIGH with 0 < LOW < HIGH");
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : generator_(seed) {}

  const std::string& one_of(const std::vector<std::string>& values) {
    return values[static_cast<std::size_t>(unit() * static_cast<double>(values.size()))];
  }
  // Three significant digits distinguish trials, and are short enough to type again. All digits where three would leave
  // the range.
  std::string within(const Range& range) {
    const double drawn = std::exp(std::lerp(std::log(range.low), std::log(range.high), unit()));
    const double value = std::clamp(drawn, range.low, range.high);
    if (range.whole) return fmt::format("{:.0f}", value);
    const std::string text = fmt::format("{:.3g}", value);
    const double rounded = parse_number<double>(text).value();
    return range.low <= rounded && rounded <= range.high ? text : fmt::format("{}", value);
  }

 private:
  double unit() { return static_cast<double>(generator_() >> 11) * 0x1p-53; }  // below 1

  std::mt19937_64 generator_;
};

struct Dimension {
  Vary vary;
  std::optional<Range> range;
};

std::vector<Dimension> dimensions_of(const std::vector<std::string>& varied, bool drawn) {
  std::vector<Dimension> dimensions;
  for (const std::string& text : varied) {
    Dimension dimension{parse_vary(text), std::nullopt};
    for (const std::string& value : dimension.vary.values) {
      const auto range = range_of(value, text);
      if (!range) continue;
      if (!drawn) throw Error(ExitCode::usage, "--vary " + text + ": a range needs --random N; a grid needs values");
      if (dimension.vary.values.size() > 1)
        throw Error(ExitCode::usage, "--vary " + text + ": a range must be the only value");
      dimension.range = range;
    }
    dimensions.push_back(std::move(dimension));
  }
  return dimensions;
}

std::vector<Trial> grid_of(const std::vector<Dimension>& dimensions) {
  std::vector<Trial> trials(1);
  for (const Dimension& dimension : dimensions) {
    std::vector<Trial> longer;
    for (const Trial& trial : trials) {
      for (const std::string& value : dimension.vary.values) {
        longer.push_back(trial);
        longer.back().push_back(dimension.vary.key + "=" + value);
      }
    }
    trials = std::move(longer);
  }
  return trials;
}

std::vector<Trial> drawn_from(const std::vector<Dimension>& dimensions, int64_t draws, uint64_t seed) {
  Dice dice(seed);
  std::vector<Trial> trials;
  for (int64_t attempt = 0; attempt < draws * kDrawsPerTrial && static_cast<int64_t>(trials.size()) < draws;
       ++attempt) {
    Trial trial;
    for (const Dimension& dimension : dimensions) {
      const std::string value = dimension.range ? dice.within(*dimension.range) : dice.one_of(dimension.vary.values);
      trial.push_back(dimension.vary.key + "=" + value);
    }
    if (std::find(trials.begin(), trials.end(), trial) == trials.end()) trials.push_back(std::move(trial));
  }
  return trials;
}

}  // namespace

std::vector<Trial> trials_of(const std::vector<std::string>& varied, std::optional<int64_t> draws, uint64_t seed) {
  const std::vector<Dimension> dimensions = dimensions_of(varied, draws.has_value());
  return draws ? drawn_from(dimensions, *draws, seed) : grid_of(dimensions);
}

}  // namespace ddprun::compare
