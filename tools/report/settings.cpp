#include "tools/report/runs.hpp"

#include <algorithm>
#include <set>

#include "cli/config/experiment.hpp"

namespace ddprun::report {

std::map<std::string, std::vector<std::string>> differing_settings(const std::vector<config::Experiment>& experiments) {
  constexpr const char* kNotUsed = "not used";
  std::map<std::string, std::vector<std::string>> settings;
  for (const config::Experiment& experiment : experiments) {
    config::Sources all;
    for (const auto& [key, value] : config::key_values(experiment)) {
      settings[key].push_back(value.empty() ? "not given" : value);
      all.locations[key] = {};
    }
    for (const std::string& key : config::unused_keys(experiment, all)) settings[key].back() = kNotUsed;
  }
  for (const char* key : {"experiment.name", "experiment.output"}) settings.erase(key);
  std::erase_if(settings, [](const auto& setting) {
    std::set<std::string> used(setting.second.begin(), setting.second.end());
    used.erase(kNotUsed);
    return used.size() < 2;
  });
  return settings;
}

std::string differing_text(const std::string& name, const std::vector<std::string>& values) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> seen;
  for (const std::string& value : values) {
    if (std::ranges::find(seen, value) == seen.end()) seen.push_back(value);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(seen.size(), kMost); ++i) text += (i == 0 ? "" : ", ") + seen[i];
  if (seen.size() > kMost) text += ", and " + std::to_string(seen.size() - kMost) + " more";
  return name + " (" + text + ")";
}

bool divides_cores(const config::Experiment& experiment) {
  return experiment.launch.device == "cpu" && experiment.launch.threads == 0;
}

}  // namespace ddprun::report
