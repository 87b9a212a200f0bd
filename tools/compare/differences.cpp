#include "tools/compare/variant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include "cli/config/experiment.hpp"
#include "ddprun/error.hpp"
#include "tools/lib/statistics.hpp"
#include "tools/report/runs.hpp"

namespace ddprun::compare {
namespace {

// Keys for how samples are loaded and divided among ranks, not for which samples. The global batch is compared instead.
const std::set<std::string> kLoading = {"data.workers",       "data.prefetch",   "data.pin_memory",
                                        "data.balance_steps", "data.batch_size", "data.batch_per"};

bool decides_the_work(const std::string& key) {
  if (key == "experiment.seed" || key == "train.epochs" || key == "train.steps") return true;
  return key.starts_with("data.") && !kLoading.contains(key);
}

// The value for each variant, and the names of the variants.
std::string line_of(const std::string& what, const std::vector<Variant>& variants,
                    const std::vector<std::string>& values) {
  std::string line = what + ":";
  for (std::size_t i = 0; i < variants.size(); ++i) {
    line += (i == 0 ? " " : ", ") + values[i] + " in " + variants[i].name;
  }
  return line;
}

std::map<std::string, std::vector<std::string>> differing_settings(const std::vector<Variant>& variants) {
  return report::differing_settings(
      tools::each(variants, [](const Variant& variant) { return variant.loaded.experiment; }));
}

}  // namespace

std::vector<std::string> unfair_differences(const std::vector<Variant>& variants) {
  std::vector<std::string> lines;
  const auto batches =
      tools::each(variants, [](const Variant& one) { return std::to_string(global_batch_of(one.loaded.experiment)); });
  if (std::set<std::string>(batches.begin(), batches.end()).size() > 1) {
    lines.push_back(line_of("global batch", variants, batches));
  }
  for (const auto& [key, values] : differing_settings(variants)) {
    if (decides_the_work(key)) lines.push_back(line_of(key, variants, values));
  }
  return lines;
}

void require_fair(const std::vector<Variant>& variants) {
  const std::vector<std::string> differences = unfair_differences(variants);
  if (differences.empty()) return;
  std::string text = "compare: the variants do not do the same work; make it equal, or add --allow-different";
  for (const std::string& line : differences) text += "\n  " + line;
  throw Error(ExitCode::usage, text);
}

std::vector<std::string> keys_that_differ(const std::vector<Variant>& variants) {
  if (variants.front().command.empty()) return tools::each(std::views::keys(differing_settings(variants)));
  std::set<std::string> keys;
  for (const Variant& variant : variants) {
    for (const std::string& override_ : variant.overrides) keys.insert(override_.substr(0, override_.find('=')));
  }
  return {keys.begin(), keys.end()};
}

bool in_float32(const config::Experiment& a, const config::Experiment& b) {
  const auto is = [](const config::Experiment& one) {
    return one.train.amp == "off" && (one.strategy.kind != "ddp" || one.strategy.compression == "none");
  };
  return is(a) && is(b);
}

}  // namespace ddprun::compare
