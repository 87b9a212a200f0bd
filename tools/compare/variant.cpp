#include "tools/compare/variant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <sstream>

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

}  // namespace

bool all_differ(const std::vector<std::string>& names) {
  return std::set<std::string>(names.begin(), names.end()).size() == names.size();
}

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

std::vector<std::string> names_of_overrides(const std::vector<std::vector<std::string>>& overrides,
                                            const std::string& what) {
  std::vector<std::string> names;
  for (const bool with_keys : {false, true}) {
    names = tools::each(overrides, [&](const auto& own) { return name_of(own, with_keys); });
    if (all_differ(names)) return names;
  }
  throw Error(ExitCode::usage, "two variants of " + what + " are the same: " + names[0]);
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
  const std::vector<std::string> names = names_of_overrides(overrides, file);
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

std::vector<std::vector<std::string>> grid_of(const std::vector<std::string>& varied) {
  std::vector<std::vector<std::string>> grid(1);
  for (const std::string& text : varied) {
    const Vary vary = parse_vary(text);
    std::vector<std::vector<std::string>> longer;
    for (const auto& overrides : grid) {
      for (const std::string& value : vary.values) {
        longer.push_back(overrides);
        longer.back().push_back(vary.key + "=" + value);
      }
    }
    grid = std::move(longer);
  }
  return grid;
}

}  // namespace ddprun::compare
