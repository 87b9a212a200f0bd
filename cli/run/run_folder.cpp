#include "cli/run/run_folder.hpp"

#include <filesystem>
#include <sstream>

#include "base/file.hpp"
#include "cli/run/run.hpp"
#include "data/datasets.hpp"
#include "record/run_dir.hpp"

namespace ddprun::run {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigFile = "/config.toml";

// "steps-rank3.jsonl", "rank3.log": not of rank 30.
bool belongs_to(const std::string& name, int rank) {
  const std::string word = "rank" + std::to_string(rank);
  const std::size_t at = name.find(word);
  return at != std::string::npos && name.find_first_of("0123456789", at + word.size()) != at + word.size();
}

// The paths of a rank's files in the folder, one per line.
std::string files_of(const std::string& folder, int rank) {
  std::string paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || !belongs_to(entry.path().filename().string(), rank)) continue;
    paths += fs::relative(entry.path(), folder).string() + "\n";
  }
  return paths;
}

// With absolute paths, so that the config can be used in any folder.
void write_config(const std::string& run_dir, config::Experiment experiment) {
  if (experiment.data.root.empty()) experiment.data.root = data::default_root(experiment.data.name);
  config::make_paths_absolute(experiment);
  replace_file(run_dir + kConfigFile, config::to_toml(experiment));
}

}  // namespace

std::string prepare_run_dir(config::Experiment experiment, int world) {
  if (experiment.strategy.kind == "ddp") experiment.launch.nproc = world;
  std::string run_dir = record::make_run_dir(experiment.experiment.output, experiment.experiment.name);
  write_config(run_dir, std::move(experiment));
  return run_dir;
}

std::string log_dir(const config::Experiment& experiment, const std::string& run_dir) {
  return experiment.launch.log_dir.empty() ? run_dir : experiment.launch.log_dir;
}

RunFolder::RunFolder(Store* store, const launch::World& world, std::string given, const config::Experiment& experiment,
                     bool joins)
    : experiment_(experiment), number_(world.rank), path_(std::move(given)) {
  if (world.on_one_host()) return;
  if (number_ == 0 && path_.empty()) path_ = prepare_run_dir(experiment, world.local_size);
  if (store == nullptr) return;
  if (number_ == 0 && !joins) store->set("run folder", path_);
  const fs::path of_rank0 = store->require("run folder", config::milliseconds(experiment.launch.timeout));
  if (number_ != 0) path_ = (fs::path(experiment.experiment.output) / of_rank0.filename()).string();
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) throw Error(ExitCode::failure, "cannot make the run folder " + path_ + ": " + error.message());
}

void RunFolder::meet(const Connections& connections, const launch::World& world) {
  ranks_ = connections.ranks;
  rank_ = world.rank;
  remote_.clear();
  if (world.on_one_host() || connections.store == nullptr) return;
  const auto timeout = config::milliseconds(experiment_.launch.timeout);
  if (rank_ == 0) {
    const std::string mark = aside_path(path_ + "/rank0");  // also an earlier rank 0 may have made the folder on a disk
    OutputFile{mark}.close();
    connections.store->set("rank 0's mark", fs::path(mark).filename().string());
  }
  const std::string mark = path_ + "/" + connections.store->require("rank 0's mark", timeout);
  const std::string sees = fs::exists(mark) ? "1" : "0";
  const auto all = connections.store->allgather("sees the run folder", rank_, world.size, sees, timeout);
  for (int rank = 0; rank < world.size; ++rank) {
    if (all[static_cast<std::size_t>(rank)] == "0") remote_.push_back(rank);
  }
  std::error_code ignored;
  if (rank_ == 0) fs::remove(mark, ignored);
  if (world.local_rank == 0 && !fs::exists(path_ + kConfigFile)) write_config(path_, experiment_);
}

void RunFolder::copy(int from, const std::string& path, const Pass& pass) const {
  if (rank_ == from) return send_file(from, path, pass);
  receive_file(rank_ == 0 ? path : "", pass);
}

void RunFolder::move_to_rank0(const std::function<std::string(int rank)>& path_of) const {
  for (const int from : remote_) {
    const std::string path = path_of(from);
    if (path.empty()) continue;
    copy(from, path, pass_from(ranks_, from));
    std::error_code ignored;  // a file that stays costs only space
    if (rank_ == from) fs::remove(path, ignored);
  }
}

void RunFolder::gather() const {
  for (const int from : remote_) {
    const Pass pass = pass_from(ranks_, from);
    std::istringstream files(pass(rank_ == from ? files_of(path_, number_) : ""));
    for (std::string file; std::getline(files, file);) {
      const std::string path = path_ + "/" + file;
      if (rank_ == 0) fs::create_directories(fs::path(path).parent_path());
      copy(from, path, pass);
    }
  }
}

}  // namespace ddprun::run
