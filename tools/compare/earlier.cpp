#include "tools/compare/comparison.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "cli/config/experiment.hpp"
#include "ddprun/error.hpp"

namespace ddprun::compare {
namespace {

using Settings = std::map<std::string, std::string>;

// Without the run's name and output folder, which do not affect its results.
Settings configuration_of(const Variant& variant) {
  Settings settings = config::key_values(variant.loaded.experiment);
  std::erase_if(settings, [](const auto& setting) {
    return setting.first == "experiment.name" || setting.first == "experiment.output";
  });
  return settings;
}

Variant variant_of(const tools::Run& run) {
  Variant variant;
  variant.file = run.config;
  variant.loaded = config::load(run.config, {});
  variant.name = variant.loaded.experiment.experiment.name;
  return variant;
}

// At least two, with unique names.
std::vector<Member> checked(std::vector<Member> members, const char* too_few) {
  if (members.size() < 2) throw Error(ExitCode::usage, too_few);
  if (all_differ(names_of(members))) return members;
  for (Member& member : members) {
    const std::filesystem::path dir = std::filesystem::path(member.dirs.front()).lexically_normal();
    member.variant.name = (dir.has_filename() ? dir : dir.parent_path()).filename().string();
  }
  return members;
}

}  // namespace

// The first run of a member decides its variant.
void add_run(Member& member, const tools::Run& run, const Variant& variant, int64_t warmup_steps) {
  if (member.dirs.empty()) member.variant = variant;
  const Settings first = configuration_of(member.variant), next = configuration_of(variant);
  for (const auto& [key, value] : first) {
    const auto other = next.find(key);
    if (other != next.end() && other->second == value) continue;
    throw Error(ExitCode::usage, run.dir + ": " + key + " differs from that in " + member.dirs.front() +
                                     "; all runs of one group must have the same configuration");
  }
  member.dirs.push_back(run.dir);
  member.runs.push_back(figures_of(run, warmup_steps));
  ParityRun parity = tools::read_parity(run.dir, static_cast<int>(run.steps.size()));
  if (parity.empty()) return;
  member.parity_dirs.push_back(run.dir);
  member.parity_runs.push_back(std::move(parity));
}

std::vector<Member> members_of_groups(const std::vector<std::vector<std::string>>& groups, int64_t warmup_steps) {
  std::vector<Member> members;
  for (const auto& group : groups) {
    Member& member = members.emplace_back();
    for (const std::string& dir : group) {
      const tools::Run run = tools::read_run(dir);
      add_run(member, run, variant_of(run), warmup_steps);
    }
  }
  return checked(std::move(members), "--runs: give it once for each variant, at least twice");
}

std::vector<Member> members_of_folders(const std::vector<std::string>& folders, int64_t warmup_steps) {
  std::vector<Member> members;
  for (const std::string& dir : folders) {
    const tools::Run run = tools::read_run(dir);
    const Variant variant = variant_of(run);
    const auto same = std::ranges::find(members, configuration_of(variant),
                                        [](const Member& member) { return configuration_of(member.variant); });
    add_run(same == members.end() ? members.emplace_back() : *same, run, variant, warmup_steps);
  }
  return checked(std::move(members), "compare: all runs have the same configuration; at least two are needed");
}

}  // namespace ddprun::compare
