#include "tools/tune/settings.hpp"

#include <algorithm>
#include <cctype>

#include "cli/config/paths.hpp"
#include "cli/config/text.hpp"

namespace ddprun::tune {

Settings settings_of(const config::Experiment& experiment) {
  const auto& strategy = experiment.strategy;
  return {experiment.comm.backend, experiment.comm.algorithm, strategy.bucket_cap_mb, strategy.compression};
}

std::string Change::override_text() const {
  const std::string name = value.starts_with('"') ? value.substr(1, value.size() - 2) : value;
  const bool is_word =
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  return table + "." + key + "=" + (is_word ? name : value);
}

std::vector<Change> changes(const Settings& from, const Settings& to) {
  std::vector<Change> changes;
  const auto add = [&](const char* table, const char* key, const auto& before, const auto& after, auto&& text) {
    if (before != after) changes.push_back({table, key, text(after)});
  };
  const auto number = config::number_text;
  add("comm", "backend", from.backend, to.backend, config::quoted);
  add("comm", "algorithm", from.algorithm, to.algorithm, config::quoted);
  add("strategy", "bucket_cap_mb", from.bucket_cap_mb, to.bucket_cap_mb, number);
  add("strategy", "compression", from.compression, to.compression, config::quoted);
  return changes;
}

std::string to_toml(const std::vector<Change>& changes) {
  std::string text, table;
  for (const Change& change : changes) {
    if (change.table != table) text += "[" + (table = change.table) + "]\n";
    text += change.key + " = " + change.value + "\n";
  }
  return text;
}

std::string changed_config(const std::string& path, std::vector<std::string> overrides,
                           const std::vector<Change>& changes, std::optional<int64_t> ranks) {
  for (const Change& change : changes) overrides.push_back(change.override_text());
  config::Experiment changed = config::load(path, overrides, ranks).experiment;
  config::make_paths_absolute(changed);
  return config::to_toml(changed);
}

}  // namespace ddprun::tune
