#include "cli/run/resume.hpp"

#include <filesystem>

#include "base/text.hpp"
#include "cli/console/table.hpp"
#include "train/loop/position.hpp"
#include "train/tensor/weights.hpp"

namespace ddprun::run {
namespace {

namespace fs = std::filesystem;

const std::string kKey = "checkpoint.resume", kConfig = "config.";

bool complete(const checkpoint::File& state) {
  return train::number_of<int64_t>(state, "step_of_epoch") >= train::number_of<int64_t>(state, "steps_per_epoch");
}

// The commit to resume from, with all its files.
class SavedRun {
 public:
  SavedRun(Assembly& assembly, int world)
      : assembly_(assembly), world_(world), ranks_(training_ranks(assembly.experiment(), world)) {
    const std::string& path = assembly.experiment().checkpoint.resume;
    const auto commit = checkpoint::commit_of(path);
    if (!commit || !fs::exists(checkpoint::state_path(*commit, 0))) {
      throw Error(ExitCode::usage,
                  path + ": weights without the state of a run; model.weights starts a new run from them");
    }
    commit_ = *commit;
    shared_ = checkpoint::read_safetensors(checkpoint::state_path(commit_, 0));
    saved_world_ = train::number_of<int64_t>(shared_, "world");
  }

  // All reasons why the run cannot resume from it.
  const config::Errors& errors() {
    compare_keys();
    compare_batch();
    check_epoch();
    check_end();
    return errors_;
  }

  void load(std::optional<int> rank) {
    const checkpoint::Metadata metadata = train::load_weights(assembly_.model->module(), commit_.path);
    // Without a rank, all states are checked.
    const auto share = training_share(assembly_.experiment(), rank.value_or(0), world_);
    std::vector<int> needed;
    for (int part = 0; part < share.count; ++part) {
      const std::vector<int> of_part =
          checkpoint::states_for(share.first + part, static_cast<int>(saved_world_), rank && same_world());
      needed.insert(needed.end(), of_part.begin(), of_part.end());
    }
    std::erase(needed, 0);  // shared_
    auto states = checkpoint::read_states(commit_, needed);
    std::string text = message();
    states.emplace(0, std::move(shared_));
    const auto run = metadata.find("run");
    for (const auto& [saver, state] : states) {
      if (run == metadata.end() || !state.metadata.contains("run") || state.metadata.at("run") != run->second) {
        throw Error(ExitCode::usage, state.path + ": not of the same run as " + commit_.path);
      }
    }
    assembly_.resume = Resume{{commit_, same_world(), std::move(states)}, std::move(text)};
    if (const auto by = metadata.find(kStandardize); by != metadata.end()) {
      assembly_.standardization = data::read_standardization(by->second);
    }
  }

 private:
  bool same_world() const { return saved_world_ == ranks_; }

  void refuse(const std::string& key, const std::string& what) {
    errors_.add_key(config::location_of(assembly_.loaded.sources, key), key, what);
  }

  // Visits the changed keys of this kind: key, old value, new value.
  template <class Visit>
  void for_each(config::Change kind, Visit visit) const {
    const auto now = config::key_values(assembly_.experiment());
    for (const auto& [word, then] : shared_.metadata) {
      if (!word.starts_with(kConfig)) continue;
      const auto found = now.find(word.substr(kConfig.size()));
      if (found == now.end() || found->second == then || config::change_of(found->first) != kind) continue;
      visit(found->first, then, found->second);
    }
  }

  void compare_keys() {
    for_each(config::Change::refused, [&](const std::string& key, const std::string& then, const std::string&) {
      refuse(key, "the run of " + commit_.path + " has " + then +
                      ", and with another value it would not be that run; give it that value, or start a new run from "
                      "its weights with model.weights");
    });
  }

  void compare_batch() {
    const int64_t then = train::number_of<int64_t>(shared_, "batch"),
                  samples = train::number_of<int64_t>(shared_, "samples");
    const int64_t now = rank_batch(assembly_.loaded, world_) * ranks_;
    if (now != then) {
      refuse("data.batch_size", "makes a global batch of " + std::to_string(now) + ", and the run of " + commit_.path +
                                    " has " + std::to_string(then));
    }
    const int64_t here = assembly_.data.train->size();
    if (here != samples) {
      refuse("data.name", "has " + console::several(here, "training sample") + " here, and " + std::to_string(samples) +
                              " in the run of " + commit_.path);
    }
  }

  void check_epoch() {
    if (same_world() || complete(shared_)) return;
    const auto saved = shared_.metadata.find(kConfig + "strategy.virtual_ranks");
    const bool was_virtual = saved != shared_.metadata.end() && saved->second != "0";
    refuse(was_virtual ? "strategy.virtual_ranks" : "launch.nproc",
           commit_.path + " lies in the middle of an epoch, which only " + std::to_string(saved_world_) +
               (was_virtual ? " virtual ranks" : " ranks") +
               " can finish; use as many, or a checkpoint at the end of an epoch");
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
                       std::to_string(train::number_of<int64_t>(shared_, "epoch") + 1);
    std::string changes;
    for_each(config::Change::reported, [&](const std::string& key, const std::string& then, const std::string& now) {
      changes += (changes.empty() ? "" : ", ") + key + " = " + (now.empty() ? "not given" : now) + " (was " +
                 (then.empty() ? "not given" : then) + ")";
    });
    if (!changes.empty()) text += "; with " + changes;
    if (same_world()) return text;
    return text + "; on " +
           console::several(ranks_, has_virtual_ranks(assembly_.experiment()) ? "virtual rank" : "rank") + " (were " +
           std::to_string(saved_world_) + "): not bit for bit what those would compute";
  }

  Assembly& assembly_;
  const int world_;
  const int ranks_;  // with virtual ranks, these
  checkpoint::Commit commit_;
  checkpoint::File shared_;  // rank 0's state file
  int64_t saved_world_ = 0;
  config::Errors errors_;
};

}  // namespace

std::string at_the_end(const config::Experiment::Train& plan, const checkpoint::File& state,
                       const std::string& commit) {
  const int64_t epochs = train::number_of<int64_t>(state, "epoch") + (complete(state) ? 1 : 0);
  const int64_t steps = train::number_of<int64_t>(state, "step");
  const bool ended = plan.epochs ? epochs >= *plan.epochs : steps >= plan.steps.value_or(0);
  if (!ended) return "";
  return "nothing is left to train: " + commit + " has " +
         (plan.epochs ? console::several(epochs, "epoch") : console::several(steps, "step"));
}

void prepare_resume(Assembly& assembly, int world, std::optional<int> rank) {
  if (assembly.experiment().checkpoint.resume.empty()) return;
  const config::Errors errors = config::at_key(assembly.loaded.sources, kKey, [&] {
    SavedRun saved(assembly, world);
    const config::Errors found = saved.errors();
    if (found.empty()) saved.load(rank);
    return found;
  });
  errors.raise();
}

checkpoint::Metadata state_metadata(const Assembly& assembly, const std::string& run_dir, int world,
                                    int64_t steps_per_epoch) {
  const int ranks = training_ranks(assembly.experiment(), world);
  checkpoint::Metadata metadata{{"ddprun", version()},
                                {"run", fs::path(run_dir).filename().string()},
                                {"world", std::to_string(ranks)},
                                {"batch", std::to_string(rank_batch(assembly.loaded, world) * ranks)},
                                {"samples", std::to_string(assembly.data.train->size())},
                                {"steps_per_epoch", std::to_string(steps_per_epoch)}};
  for (const auto& [key, value] : config::key_values(assembly.experiment())) metadata[kConfig + key] = value;
  return metadata;
}

}  // namespace ddprun::run
