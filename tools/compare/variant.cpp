#include "tools/compare/variant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <random>
#include <set>
#include <sstream>

#include "base/text.hpp"
#include "ddprun/error.hpp"
#include "record/environment.hpp"
#include "tools/lib/statistics.hpp"

namespace ddprun::compare {
namespace {

namespace fs = std::filesystem;

// Throws the errors of all variants together; an error that several variants have, once.
std::vector<Variant> loaded(std::vector<Variant> variants, std::optional<int64_t> ranks) {
  std::vector<std::string> errors;
  for (Variant& variant : variants) {
    try {
      variant.loaded = config::load(variant.file, variant.overrides, ranks, variant.typed);
      // ddprun refuses several ranks for a strategy of one process. Here -n is for the variants of ddp.
      if (variant.loaded.experiment.strategy.kind == "ddp") continue;
      std::erase_if(variant.overrides, [](const auto& override_) { return override_.starts_with("launch.nproc="); });
    } catch (const Error& error) {
      std::istringstream lines(error.what());
      for (std::string line; std::getline(lines, line);) {
        if (std::ranges::find(errors, line) == errors.end()) errors.push_back(line);
      }
    }
  }
  if (!errors.empty()) throw Error(ExitCode::usage, fmt::format("{}", fmt::join(errors, "\n")));
  return variants;
}

bool all_differ(const std::vector<std::string>& names) {
  return std::set<std::string>(names.begin(), names.end()).size() == names.size();
}

// "ring", but "lr=0.1" and "nesterov=true": numbers, true and false are unclear without their key.
std::string part_of_name(const std::string& override_) {
  const std::size_t equals = override_.find('=');
  const std::string value = override_.substr(equals + 1);
  const bool is_word = !value.empty() && std::isalpha(static_cast<unsigned char>(value[0])) != 0;
  if (is_word && value != "true" && value != "false") return value;
  const std::string key = override_.substr(0, equals);
  const std::size_t dot = key.rfind('.');
  return (dot == std::string::npos ? key : key.substr(dot + 1)) + "=" + value;
}

std::string name_of(const std::vector<std::string>& overrides, bool with_keys) {
  std::string name;
  for (const std::string& override_ : overrides) {
    name += (name.empty() ? "" : " ") + (with_keys ? override_ : part_of_name(override_));
  }
  return name.empty() ? "unchanged" : name;
}

std::vector<std::string> names_of_files(const std::vector<std::string>& files) {
  const auto stems = tools::each(files, [](const std::string& file) { return fs::path(file).stem().string(); });
  if (all_differ(stems)) return stems;
  if (all_differ(files)) return files;
  throw Error(ExitCode::usage, "a config is given twice; --aa compares a variant with itself");
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (c == ',' && depth == 0 && quote == 0) {
      parts.emplace_back();
      continue;
    }
    if (c == ' ' && parts.back().empty()) continue;  // "ring, tree"
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else {
      depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    }
    parts.back() += c;
  }
  return parts;
}

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

Vary parse_vary(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) {
    throw Error(ExitCode::usage, "--vary " + text + ": expected KEY=VALUE,VALUE,... such as comm.algorithm=ring,tree");
  }
  Vary vary{text.substr(0, equals), split_at_commas(text.substr(equals + 1))};
  if (std::ranges::count(vary.values, "") > 0) throw Error(ExitCode::usage, "--vary " + text + ": a value is empty");
  if (!all_differ(vary.values)) throw Error(ExitCode::usage, "--vary " + text + ": a value is given twice");
  return vary;
}

std::vector<Variant> variants_of_files(const std::vector<std::string>& files, const std::vector<std::string>& common,
                                       std::optional<int64_t> ranks) {
  const std::vector<std::string> names = names_of_files(files);
  std::vector<Variant> variants;
  for (std::size_t i = 0; i < files.size(); ++i) variants.push_back({names[i], files[i], common, {}});
  return loaded(std::move(variants), ranks);
}

std::vector<Variant> variants_of_overrides(const std::string& file,
                                           const std::vector<std::vector<std::string>>& overrides,
                                           const std::vector<std::string>& common, std::optional<int64_t> ranks,
                                           const std::string& option) {
  std::vector<std::string> names;
  for (const bool with_keys : {false, true}) {
    names = tools::each(overrides, [&](const auto& own) { return name_of(own, with_keys); });
    if (all_differ(names)) break;
  }
  if (!all_differ(names)) throw Error(ExitCode::usage, "two variants of " + file + " are the same: " + names[0]);
  std::vector<Variant> variants;
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    Variant variant{names[i], file, common, {}};
    variant.overrides.insert(variant.overrides.end(), overrides[i].begin(), overrides[i].end());
    for (const std::string& own : overrides[i]) variant.typed[own] = option + " " + own;
    variants.push_back(std::move(variant));
  }
  return loaded(std::move(variants), ranks);
}

std::string as_typed(const Variant& variant, const std::string& error) {
  for (const auto& [override_, typed] : variant.typed) {
    const std::string cited = "--set " + override_ + ":";
    if (error.starts_with(cited)) return typed + error.substr(cited.size() - 1);
  }
  return error;
}

std::vector<std::string> without_length(std::vector<std::string> overrides) {
  std::erase_if(overrides, [](const std::string& override_) {
    return override_.starts_with("train.epochs=") || override_.starts_with("train.steps=");
  });
  return overrides;
}

int64_t ranks_of(const config::Experiment& experiment) {
  if (experiment.strategy.kind != "ddp") return 1;
  return experiment.launch.nproc > 0 ? experiment.launch.nproc : record::collect_environment({}).cores;
}

int64_t workers_of(const config::Experiment& experiment) {
  return experiment.strategy.kind == "dp" ? experiment.strategy.devices : ranks_of(experiment);
}

int64_t global_batch_of(const config::Experiment& experiment) {
  const int64_t batch = experiment.data.batch_size;
  return experiment.data.batch_per == "rank" ? batch * ranks_of(experiment) : batch;
}

std::string folder_name(const std::string& name) {
  std::string text = name;
  const auto is_other = [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '_' && c != '-'; };
  std::replace_if(text.begin(), text.end(), is_other, '-');
  if (text.starts_with('.')) text[0] = '-';
  return text;
}

std::vector<Trial> trials_of(const std::vector<std::string>& varied, std::optional<int64_t> draws, uint64_t seed) {
  const std::vector<Dimension> dimensions = dimensions_of(varied, draws.has_value());
  return draws ? drawn_from(dimensions, *draws, seed) : grid_of(dimensions);
}

}  // namespace ddprun::compare
