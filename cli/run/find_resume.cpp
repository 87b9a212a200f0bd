#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/log.hpp"
#include "cli/run/between_hosts.hpp"
#include "cli/run/resume.hpp"
#include "cli/run/run.hpp"
#include "record/run_dir.hpp"
#include "train/loop/loop_state.hpp"

namespace ddprun::run {
namespace {

namespace fs = std::filesystem;

const std::string kResume = "checkpoint.resume";
// What rank 0 sends to the others: kFrom and a path, kEnd if the training is complete, or an error message.
const std::string kFrom = "from ", kEnd = "end";
constexpr auto kCopied = std::chrono::hours(24);  // on a slow network; a rank that fails ends the others

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

// As at_the_end(), for the newest commit of a run, which train.early_stop may also have ended.
std::string end_of_run(const config::Experiment::Train& plan, const checkpoint::Commit& commit) {
  const std::string state = checkpoint::state_path(commit, 0);
  if (std::string text = at_the_end(plan, checkpoint::read_safetensors(state), commit.path); !text.empty()) return text;
  const fs::path run = fs::path(commit.path).parent_path().parent_path();
  std::ifstream file(run / "summary.json");
  if (plan.early_stop.empty() || !file) return "";
  const auto summary = nlohmann::json::parse(file, nullptr, false);
  if (!summary.is_object() || summary.value("stopped", "") != train::kEarlyStop) return "";
  return "nothing is left to train: train.early_stop has ended " + run.string();
}

// What rank 0 found: its experiment.output, and the path. A path in that folder is in experiment.output of this host.
std::string on_this_host(const std::string& found, const std::string& output) {
  const std::size_t end = found.find('\n');
  const std::string path = found.substr(end + 1);
  const fs::path relative = fs::path(path).lexically_relative(found.substr(0, end));
  const bool inside = !path.empty() && !relative.empty() && *relative.begin() != "..";
  return inside ? (fs::path(output) / relative).string() : path;
}

// The model file and the states of its ranks, the model file last: it completes the commit.
std::vector<std::string> files_of_commit(const std::string& path) {
  std::vector<std::string> files;
  if (const auto commit = checkpoint::commit_of(path)) {
    for (int rank = 0; fs::exists(checkpoint::state_path(*commit, rank)); ++rank) {
      files.push_back(checkpoint::state_path(*commit, rank));
    }
  }
  files.push_back(path);
  return files;
}

// Copies rank 0's commit (the model file and the states of all ranks) through the store to each host that does not have
// it. `path`: of the model file, on this host. Collective. Throws Error(failure) for a file that cannot be read or
// written, and as Store.
void copy_commit(const std::string& path, const launch::World& world, Store& store, std::chrono::milliseconds timeout) {
  const bool lacks = world.rank != 0 && !fs::exists(path);
  const bool copies = world.rank == 0 || (lacks && world.local_rank == 0);
  const std::string copier = "copies", mine = copies ? copier : "";
  const auto all = store.allgather("who has the checkpoint", world.rank, world.size, mine, timeout);
  const auto copiers = static_cast<int>(std::count(all.begin(), all.end(), copier));
  if (copiers == 1) return;
  const auto index = static_cast<int>(std::count(all.begin(), all.begin() + world.rank, copier));
  int passed = 0;
  // The store forgets the text when all have it.
  const Pass pass = [&](const std::string& text) {
    return store.allgather("checkpoint " + std::to_string(passed++), index, copiers, text, timeout).front();
  };
  if (world.rank == 0) {
    log::info("copying the checkpoint to " + std::to_string(copiers - 1) + " host" + (copiers == 2 ? "" : "s") +
              " without it: " + path);
    for (const std::string& file : files_of_commit(path)) {
      pass(fs::path(file).filename().string());
      send_file(0, file, pass);
    }
    pass("");
  } else if (copies) {
    const fs::path folder = fs::path(path).parent_path();
    fs::create_directories(folder);
    for (std::string name; !(name = pass("")).empty();) receive_file((folder / name).string(), pass);
  }
  store.allgather("the checkpoint is here", world.rank, world.size, "", kCopied);
}

}  // namespace

std::optional<std::string> checkpoint_at(const std::string& path) {
  std::error_code unread;
  const fs::file_type type = fs::status(path, unread).type();
  if (type == fs::file_type::not_found) return std::nullopt;
  if (type == fs::file_type::none) throw_file_error("read", path, unread.value());
  return type == fs::file_type::directory ? newest_commit(path).path : path;
}

std::optional<std::string> newest_commit_in(const std::string& run_dir) {
  try {
    return newest_commit(run_dir).path;
  } catch (const Error& error) {
    log::warning(error.what());  // a run before it may have a whole one
    return std::nullopt;
  }
}

std::string how_to_resume(const std::string& run_dir) try {
  if (checkpoint::list_commits(run_dir + "/checkpoints").empty()) return "";
  return "to resume: repeat the command with --set checkpoint.resume=" + run_dir;
} catch (const Error&) {
  return "";  // the folder cannot be read: the error of the run itself is reported
}

bool find_resume(config::Loaded& loaded) {
  const config::Experiment& experiment = loaded.experiment;
  std::string resume = experiment.checkpoint.resume, end;
  if (resume.empty()) return true;
  resume = config::at_key(loaded.sources, kResume, [&]() -> std::string {
    if (resume == "auto" || resume == "latest") {
      const auto commit = latest_commit(experiment.experiment);
      if (commit && resume == "auto") end = end_of_run(experiment.train, *commit);
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

bool find_common_resume(config::Loaded& loaded, const launch::World& world, Store* store,
                        std::chrono::milliseconds timeout) {
  if (store == nullptr || world.on_one_host()) return find_resume(loaded);
  const config::Experiment& experiment = loaded.experiment;
  std::string& resume = loaded.experiment.checkpoint.resume;
  std::string mine;
  try {
    if (world.rank == 0) mine = find_resume(loaded) ? kFrom + experiment.experiment.output + "\n" + resume : kEnd;
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;
    mine = error.what();
  }
  const std::string found = store->allgather("resume", world.rank, world.size, mine, timeout).front();
  if (found.starts_with(kFrom)) {
    if (world.rank != 0) resume = on_this_host(found.substr(kFrom.size()), experiment.experiment.output);
    if (!resume.empty()) copy_commit(resume, world, *store, timeout);
    return true;
  }
  // Rank 0 may host the store, so it must not end before the others have read the result.
  store->allgather("resume seen", world.rank, world.size, "", timeout);
  if (found == kEnd) return false;
  throw Error(ExitCode::usage, found);
}

}  // namespace ddprun::run
