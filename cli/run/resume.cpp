#include "cli/run/resume.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "cli/config/experiment.hpp"
#include "cli/run/commit_copy.hpp"
#include "ddprun/error.hpp"
#include "record/run_dir.hpp"
#include "train/loop/callback.hpp"
#include "train/loop/position.hpp"
#include "train/tensor/weights.hpp"

namespace ddprun::run {
namespace {

namespace fs = std::filesystem;

const std::string kKey = "checkpoint.resume", kConfig = "config.", kZero = "strategy.zero";
// What rank 0 sends to the others: kFrom and a path, kEnd if the training is complete, or an error message.
const std::string kFrom = "from ", kEnd = "end";

// The newest whole commit of a run's folder, or of its folder of checkpoints (checkpoint::newest_whole). Removes what
// dead writers left there. Throws Error(usage) that names the folder if it has no commit.
checkpoint::Commit newest_commit(const std::string& folder) {
  const fs::path inner = fs::path(folder) / "checkpoints";
  std::error_code unread;
  const std::string dir = fs::is_directory(inner, unread) ? inner.string() : folder;
  checkpoint::remove_left_overs(dir);
  const auto commit = checkpoint::newest_whole(dir);
  if (!commit) throw Error(ExitCode::usage, folder + ": holds no checkpoint" + record::run_hint(folder));
  return *commit;
}

std::optional<checkpoint::Commit> latest_commit(const config::Experiment::Identity& experiment) {
  for (const std::string& run : record::runs_in(experiment.output, experiment.name)) {
    if (!checkpoint::list_commits(record::file_in(run, "checkpoints")).empty()) return newest_commit(run);
  }
  return std::nullopt;
}

std::string no_run(const config::Experiment::Identity& experiment) {
  return "no run of \"" + experiment.name + "\" with a checkpoint lies in " + experiment.output;
}

std::string several(int64_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

bool complete(const checkpoint::File& state) {
  return train::whole_of(state, "step_of_epoch") >= train::whole_of(state, "steps_per_epoch");
}

std::string word(const checkpoint::File& file, const std::string& key) {
  const auto found = file.metadata.find(key);
  return found == file.metadata.end() ? "" : found->second;
}

// "nothing is left to train: ..." if a run that resumes from this state is already at its end; otherwise "".
std::string at_the_end(const config::Experiment::Train& plan, const checkpoint::File& state,
                       const std::string& commit) {
  const int64_t epochs = train::whole_of(state, "epoch") + (complete(state) ? 1 : 0);
  const int64_t steps = train::whole_of(state, "step");
  const bool ended = plan.epochs ? epochs >= *plan.epochs : steps >= plan.steps.value_or(0);
  if (!ended) return "";
  return "nothing is left to train: " + commit + " has " +
         (plan.epochs ? several(epochs, "epoch") : several(steps, "step"));
}

// The same for the newest commit of a run, which train.early_stop may also have ended.
std::string at_the_end(const config::Experiment::Train& plan, const checkpoint::Commit& commit) {
  const std::string state = checkpoint::state_path(commit, 0);
  if (std::string text = at_the_end(plan, checkpoint::read_safetensors(state), commit.path); !text.empty()) return text;
  const fs::path run = fs::path(commit.path).parent_path().parent_path();
  std::ifstream file(run / "summary.json");
  if (plan.early_stop.empty() || !file) return "";
  const auto summary = nlohmann::json::parse(file, nullptr, false);
  if (!summary.is_object() || summary.value("stopped", "") != train::kEarlyStop) return "";
  return "nothing is left to train: train.early_stop has ended " + run.string();
}

// One commit with all its files.
class Candidate {
 public:
  Candidate(Assembly& assembly, int world) : assembly_(assembly), world_(world) {
    const std::string& path = assembly.experiment().checkpoint.resume;
    const auto commit = checkpoint::commit_of(path);
    if (!commit || !fs::exists(checkpoint::state_path(*commit, 0))) {
      throw Error(ExitCode::usage,
                  path + ": weights without the state of a run; model.weights starts a new run from them");
    }
    commit_ = *commit;
    shared_ = checkpoint::read_safetensors(checkpoint::state_path(commit_, 0));
    world_then_ = train::whole_of(shared_, "world");
  }

  // All reasons why the run cannot resume from it, one line each.
  std::string faults() {
    compare_keys();
    compare_batch();
    check_epoch();
    check_end();
    return faults_;
  }

  void take(std::optional<int> rank) {
    const checkpoint::Metadata metadata = train::load_weights(assembly_.model->module(), commit_.path);
    const std::string zero_then = word(shared_, kConfig + kZero);
    const bool divided = zero_then != "0" && world_then_ > 1;
    const bool same_parts =
        divided && same_world() && config::key_values(assembly_.experiment()).at(kZero) == zero_then;
    std::vector<int> needed = checkpoint::states_for({.rank = rank.value_or(0),
                                                      .saved = static_cast<int>(world_then_),
                                                      .same_world = same_world(),
                                                      .parts_move = !rank || (divided && !same_parts)});
    std::erase(needed, 0);  // shared_
    auto states = checkpoint::read_states(commit_, needed);
    std::string text = message();
    states.emplace(0, std::move(shared_));
    const auto run = metadata.find("run");
    for (const auto& [saver, state] : states) {
      if (run == metadata.end() || word(state, "run") != run->second) {
        throw Error(ExitCode::usage, state.path + ": not of the same run as " + commit_.path);
      }
    }
    assembly_.resume = Resume{{commit_, same_world(), same_parts, std::move(states)}, std::move(text)};
    if (const auto by = metadata.find(kStandardize); by != metadata.end()) {
      assembly_.standardization = data::read_standardization(by->second);
    }
  }

 private:
  bool same_world() const { return world_then_ == world_; }

  void refuse(const std::string& key, const std::string& what) {
    if (!faults_.empty()) faults_ += "\n";
    faults_ += config::error(assembly_.loaded.sources, key, what);
  }

  // Visits the changed keys: key, old value, new value.
  template <class Visit>
  void for_each_change(Visit visit) const {
    const auto now = config::key_values(assembly_.experiment());
    for (const auto& [word, then] : shared_.metadata) {
      if (!word.starts_with(kConfig)) continue;
      const auto found = now.find(word.substr(kConfig.size()));
      if (found != now.end() && found->second != then) visit(found->first, then, found->second);
    }
  }

  void compare_keys() {
    for_each_change([&](const std::string& key, const std::string& then, const std::string&) {
      if (config::change_of(key) != config::Change::refused) return;
      refuse(key, "the run of " + commit_.path + " has " + then +
                      ", and with another value it would not be that run; give it that value, or start a new run from "
                      "its weights with model.weights");
    });
  }

  void compare_batch() {
    const int64_t then = train::whole_of(shared_, "batch"), samples = train::whole_of(shared_, "samples");
    const int64_t now = rank_batch(assembly_.loaded, world_) * world_;
    if (now != then) {
      refuse("data.batch_size", "makes a global batch of " + std::to_string(now) + ", and the run of " + commit_.path +
                                    " has " + std::to_string(then));
    }
    const int64_t here = assembly_.data.train->size();
    if (here != samples) {
      refuse("data.name", "has " + several(here, "training sample") + " here, and " + std::to_string(samples) +
                              " in the run of " + commit_.path);
    }
  }

  void check_epoch() {
    if (same_world() || complete(shared_)) return;
    refuse("launch.nproc", commit_.path + " lies in the middle of an epoch, which only as many ranks can finish; use " +
                               std::to_string(world_then_) + end_of_epoch());
  }

  // ", or ...": the newest earlier commit from which any number of ranks can resume.
  std::string end_of_epoch() const {
    auto commits = checkpoint::list_commits(fs::path(commit_.path).parent_path().string());
    std::reverse(commits.begin(), commits.end());
    for (const checkpoint::Commit& commit : commits) {
      const std::string state = checkpoint::state_path(commit, 0);
      if (commit.step >= commit_.step || !fs::exists(state)) continue;
      if (complete(checkpoint::read_safetensors(state))) return ", or " + kKey + " = \"" + commit.path + "\"";
    }
    return "";
  }

  void check_end() {
    const auto& plan = assembly_.experiment().train;
    const std::string text = at_the_end(plan, shared_, commit_.path);
    if (text.empty()) return;
    refuse(plan.epochs ? "train.epochs" : "train.steps", text + "; give more, or see it with ddprun evaluate");
  }

  std::string message() const {
    std::string text = "resuming from " + commit_.path + ": step " + std::to_string(commit_.step) + ", " +
                       (complete(shared_) ? "at the end of" : "in the middle of") + " epoch " +
                       std::to_string(train::whole_of(shared_, "epoch") + 1);
    std::string changes;
    for_each_change([&](const std::string& key, const std::string& then, const std::string& now) {
      if (config::change_of(key) != config::Change::reported) return;
      changes += (changes.empty() ? "" : ", ") + key + " = " + (now.empty() ? "not given" : now) + " (was " +
                 (then.empty() ? "not given" : then) + ")";
    });
    if (!changes.empty()) text += "; with " + changes;
    if (assembly_.experiment().strategy.compression == "powersgd") {
      text += "; PowerSGD starts anew: not bit for bit what a run without a stop would compute";
    }
    if (same_world()) return text;
    return text + "; on " + several(world_, "rank") + " (were " + std::to_string(world_then_) +
           "): not bit for bit what those would compute";
  }

  Assembly& assembly_;
  const int world_;
  checkpoint::Commit commit_;
  checkpoint::File shared_;  // rank 0's state file
  int64_t world_then_ = 0;
  std::string faults_;
};

}  // namespace

std::optional<std::string> checkpoint_at(const std::string& path) {
  std::error_code unread;
  const fs::file_type type = fs::status(path, unread).type();
  if (type == fs::file_type::not_found) return std::nullopt;
  if (type == fs::file_type::none) throw_file_error("read", path, unread.value());
  return type == fs::file_type::directory ? newest_commit(path).path : path;
}

std::string newest_commit_in(const std::string& run_dir) {
  try {
    const std::string dir = (fs::path(run_dir) / "checkpoints").string();
    checkpoint::remove_left_overs(dir);
    const auto commit = checkpoint::newest_whole(dir);
    return commit ? commit->path : "";
  } catch (const Error& error) {
    log::warning(error.what());  // a run before it may have a whole one
    return "";
  }
}

bool find_resume(config::Loaded& loaded) {
  const config::Experiment& experiment = loaded.experiment;
  std::string resume = experiment.checkpoint.resume, end;
  if (resume.empty()) return true;
  resume = config::at_key(loaded.sources, kKey, [&]() -> std::string {
    if (resume == "auto" || resume == "latest") {
      const auto commit = latest_commit(experiment.experiment);
      if (commit && resume == "auto") end = at_the_end(experiment.train, *commit);
      if (commit) return commit->path;
      if (resume == "auto") return "";
      throw Error(ExitCode::usage,
                  no_run(experiment.experiment) + "; leave it out for a run from the beginning, or name a run folder");
    }
    if (const auto file = checkpoint_at(resume)) return *file;
    throw Error(ExitCode::usage, "no such file or folder; give a checkpoint, a run folder, \"latest\" or \"auto\"");
  });
  if (resume.empty()) log::info(no_run(experiment.experiment) + ": this is a new run");
  if (!end.empty()) log::always("ddprun: " + end);
  loaded.experiment.checkpoint.resume = resume;
  return end.empty();
}

namespace {

// What rank 0 found: its experiment.output, and the path. A path in that folder is in experiment.output of this host.
std::string on_this_host(const std::string& found, const std::string& output) {
  const std::size_t end = found.find('\n');
  const std::string path = found.substr(end + 1);
  const fs::path relative = fs::path(path).lexically_relative(found.substr(0, end));
  const bool inside = !path.empty() && !relative.empty() && *relative.begin() != "..";
  return inside ? (fs::path(output) / relative).string() : path;
}

}  // namespace

bool find_common_resume(config::Loaded& loaded, const launch::World& world, Store* store,
                        std::chrono::milliseconds timeout) {
  std::string& resume = loaded.experiment.checkpoint.resume;
  if (store == nullptr || world.on_one_host()) return find_resume(loaded);
  const std::string key = "resume", seen = "resume seen by ";
  if (world.rank != 0) {
    const std::string found = store->get(key, timeout);
    store->set(seen + std::to_string(world.rank), "");
    if (found == kEnd) return false;
    if (!found.starts_with(kFrom)) throw Error(ExitCode::usage, found);
    resume = on_this_host(found.substr(kFrom.size()), loaded.experiment.experiment.output);
    if (!resume.empty()) copy_commit(resume, world, *store, timeout);
    return true;
  }
  // Rank 0 may host the store, so it must not end before the others have read the result.
  const auto wait_for_others = [&] {
    for (int rank = 1; rank < world.size; ++rank) store->get(seen + std::to_string(rank), timeout);
  };
  try {
    const bool more = find_resume(loaded);
    store->set(key, more ? kFrom + loaded.experiment.experiment.output + "\n" + resume : kEnd);
    if (!more) wait_for_others();
    if (more && !resume.empty()) copy_commit(resume, world, *store, timeout);
    return more;
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;
    store->set(key, error.what());
    wait_for_others();
    throw;
  }
}

void prepare_resume(Assembly& assembly, int world, std::optional<int> rank) {
  if (assembly.experiment().checkpoint.resume.empty()) return;
  const std::string faults = config::at_key(assembly.loaded.sources, kKey, [&] {
    Candidate candidate(assembly, world);
    const std::string found = candidate.faults();
    if (found.empty()) candidate.take(rank);
    return found;
  });
  if (!faults.empty()) throw Error(ExitCode::usage, faults);
}

checkpoint::Metadata state_metadata(const Assembly& assembly, const std::string& run_dir, int world,
                                    int64_t steps_per_epoch) {
  checkpoint::Metadata metadata{{"ddprun", version()},
                                {"run", fs::path(run_dir).filename().string()},
                                {"world", std::to_string(world)},
                                {"batch", std::to_string(rank_batch(assembly.loaded, world) * world)},
                                {"samples", std::to_string(assembly.data.train->size())},
                                {"steps_per_epoch", std::to_string(steps_per_epoch)}};
  for (const auto& [key, value] : config::key_values(assembly.experiment())) metadata[kConfig + key] = value;
  return metadata;
}

}  // namespace ddprun::run
