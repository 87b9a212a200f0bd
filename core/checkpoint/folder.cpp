#include "checkpoint/folder.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/file.hpp"
#include "base/log.hpp"
#include "checkpoint/internal.hpp"
#include "ddprun/error.hpp"

namespace ddprun::checkpoint {
namespace {

namespace fs = std::filesystem;

void for_each_name(const std::string& dir, auto visit) {
  std::error_code fault;
  for (fs::directory_iterator at(dir, fault), end; !fault && at != end; at.increment(fault)) {
    visit(at->path().filename().string());
  }
  if (fault && fault != std::errc::no_such_file_or_directory) throw_file_error("list folder", dir, fault.value());
}

std::string in(const std::string& dir, const std::string& name) {
  return (fs::path(dir) / name).string();
}

void create_folder(const std::string& dir) {
  std::error_code fault;
  fs::create_directories(dir, fault);
  if (fault) throw_file_error("create folder", dir, fault.value());
}

// Under its final name the file is complete or does not exist.
std::string write_whole(const std::string& dir, const std::string& name, const std::vector<TensorView>& tensors,
                        const Metadata& metadata) {
  std::string path = in(dir, name);
  replace_by(path, [&](const std::string& aside) { write_safetensors(aside, tensors, metadata); });
  sync_folder(dir);
  return path;
}

Metadata with_place(Metadata metadata, int64_t step, int64_t epoch) {
  metadata["step"] = std::to_string(step);
  metadata["epoch"] = std::to_string(epoch);
  return metadata;
}

// A remaining old file costs only space, so it does not stop the run.
void remove(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return;
  log::warning("cannot remove " + path + ": " + std::generic_category().message(errno));
}

// States up to step `last` without a commit.
void remove_lone_states(const std::string& dir, int64_t last) {
  std::set<int64_t> steps;
  for (const Commit& commit : list_commits(dir)) steps.insert(commit.step);
  for_each_name(dir, [&](const std::string& name) {
    const int64_t step = step_of_state(name);
    if (step >= 0 && step <= last && !steps.contains(step)) remove(in(dir, name));
  });
}

}  // namespace

Commit commit_at(const std::string& dir, int64_t step) {
  return {step, in(dir, commit_name(step))};
}

std::string state_path(const Commit& commit, int rank) {
  return (fs::path(commit.path).parent_path() / state_name(commit.step, rank)).string();
}

void replace_safetensors(const std::string& path, const std::vector<TensorView>& tensors, const Metadata& metadata) {
  require_folder(path, ExitCode::failure, "cannot write " + path);
  const fs::path file(end_of_links(path));
  const std::string dir = file.has_parent_path() ? file.parent_path().string() : ".", name = file.filename().string();
  for_each_name(dir, [&](const std::string& other) {
    if (is_left_over_of(name, other)) remove(in(dir, other));
  });
  write_whole(dir, name, tensors, metadata);
}

void save_state(const std::string& dir, int64_t step, int rank, const std::vector<TensorView>& tensors,
                const Metadata& metadata) {
  create_folder(dir);
  write_whole(dir, state_name(step, rank), tensors, metadata);
}

std::vector<Commit> list_commits(const std::string& dir) {
  std::vector<Commit> commits;
  for_each_name(dir, [&](const std::string& name) {
    if (const int64_t step = step_of_commit(name); step >= 0) commits.push_back({step, in(dir, name)});
  });
  std::sort(commits.begin(), commits.end(), [](const Commit& a, const Commit& b) { return a.step < b.step; });
  return commits;
}

void verify(const Commit& commit) {
  read_safetensors(commit.path);
  std::error_code unread;  // then read_safetensors() says why
  if (fs::status(state_path(commit, 0), unread).type() == fs::file_type::not_found) return;  // weights alone
  const File first = read_safetensors(state_path(commit, 0));
  const auto world = first.metadata.find("world");
  const int states = world == first.metadata.end() ? 1 : std::atoi(world->second.c_str());
  for (int rank = 1; rank < states; ++rank) read_safetensors(state_path(commit, rank));
}

std::vector<int> states_for(int rank, int saved, bool same_world) {
  if (rank > 0) return same_world ? std::vector{0, rank} : std::vector{0};
  std::vector<int> ranks(same_world ? 1 : static_cast<size_t>(saved));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::map<int, File> read_states(const Commit& commit, const std::vector<int>& ranks) {
  std::map<int, File> states;
  for (const int rank : ranks) states.emplace(rank, read_safetensors(state_path(commit, rank)));
  return states;
}

std::optional<Commit> newest_whole(const std::string& dir) {
  const std::vector<Commit> commits = list_commits(dir);
  std::vector<Error> damaged;
  for (auto commit = commits.rbegin(); commit != commits.rend(); ++commit) {
    try {
      verify(*commit);
    } catch (const Error& error) {
      damaged.push_back(error);
      continue;
    }
    for (const Error& error : damaged) {
      log::warning(std::string(error.what()) + "; using an older checkpoint instead: " + commit->path);
    }
    return *commit;
  }
  if (!damaged.empty()) throw Error(damaged.front());
  return std::nullopt;
}

void remove_left_overs(const std::string& dir) {
  for_each_name(dir, [&](const std::string& name) {
    if (is_left_over(name)) remove(in(dir, name));
  });
}

std::optional<Commit> commit_of(const std::string& path) {
  const int64_t step = step_of_commit(fs::path(path).filename().string());
  return step < 0 ? std::nullopt : std::optional(Commit{step, path});
}

std::string best_path(const std::string& dir) {
  return in(dir, std::string(kBestName));
}

CheckpointFolder::CheckpointFolder(std::string dir, int64_t keep) : dir_(std::move(dir)), keep_(keep) {
  if (keep_ < 0) throw std::logic_error("a checkpoint folder keeps at least one commit");
  create_folder(dir_);
  remove_left_overs(dir_);
  remove_lone_states(dir_, std::numeric_limits<int64_t>::max());
}

std::string CheckpointFolder::save(int64_t step, int64_t epoch, const std::vector<TensorView>& tensors,
                                   const Metadata& metadata) {
  const std::vector<Commit> before = list_commits(dir_);
  if (!before.empty() && before.back().step > step) {
    // Pruning by step would remove the new commit and keep the old one.
    throw Error(ExitCode::usage, "cannot commit step " + std::to_string(step) + ": " + before.back().path +
                                     " is of a later step; resume from it, or use another folder");
  }
  const std::string path = write_whole(dir_, commit_name(step), tensors, with_place(metadata, step, epoch));
  const std::vector<Commit> all = list_commits(dir_);
  const auto keep = static_cast<size_t>(keep_);
  for (size_t i = 0; keep > 0 && i + keep < all.size(); ++i) remove(all[i].path);
  remove_lone_states(dir_, all.back().step);
  return path;
}

std::string CheckpointFolder::save_best(int64_t step, int64_t epoch, const std::vector<TensorView>& tensors,
                                        const Metadata& metadata) {
  return write_whole(dir_, std::string(kBestName), tensors, with_place(metadata, step, epoch));
}

}  // namespace ddprun::checkpoint
