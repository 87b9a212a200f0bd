#include "checkpoint/folder.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"

namespace ddprun::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kAside = ".safetensors.tmp-";  // and the writer's process id

std::string name_of(int64_t step) {
  const std::string digits = std::to_string(step);
  const size_t zeros = digits.size() < 8 ? 8 - digits.size() : 0;
  return std::string(kPrefix) + std::string(zeros, '0') + digits + std::string(kSuffix);
}

// -1 where the text is no whole number.
int64_t number_of(std::string_view text) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : -1;
}

// The step of a commit's file name; -1 for any other file.
int64_t step_of(const std::string& name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return -1;
  const int64_t step =
      number_of(std::string_view(name).substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
  return step >= 0 && name == name_of(step) ? step : -1;
}

bool alive(int64_t process) {
  return ::kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH;
}

// Whether a file was left by a writer that is gone. What carries our own id is left too: we are not writing now.
bool left_over(const std::string& name) {
  const size_t at = name.find(kAside);
  if (!name.starts_with(kPrefix) || at == std::string::npos) return false;
  const int64_t writer = number_of(std::string_view(name).substr(at + kAside.size()));
  return writer > 0 && (writer == ::getpid() || !alive(writer));
}

template <class Visit>
void for_each_name(const std::string& dir, Visit visit) {
  std::error_code fault;
  for (fs::directory_iterator at(dir, fault), end; !fault && at != end; at.increment(fault)) {
    visit(at->path().filename().string());
  }
  if (fault && fault != std::errc::no_such_file_or_directory) throw_file_error("list folder", dir, fault.value());
}

std::string in(const std::string& dir, const std::string& name) {
  return (fs::path(dir) / name).string();
}

}  // namespace

std::vector<Commit> list_commits(const std::string& dir) {
  std::vector<Commit> commits;
  for_each_name(dir, [&](const std::string& name) {
    if (const int64_t step = step_of(name); step >= 0) commits.push_back({step, in(dir, name)});
  });
  std::sort(commits.begin(), commits.end(), [](const Commit& a, const Commit& b) { return a.step < b.step; });
  return commits;
}

CheckpointFolder::CheckpointFolder(std::string dir, int64_t keep) : dir_(std::move(dir)), keep_(keep) {
  if (keep_ < 1) throw std::logic_error("a checkpoint folder keeps at least one commit");
  std::error_code fault;
  fs::create_directories(dir_, fault);
  if (fault) throw_file_error("create folder", dir_, fault.value());
  for_each_name(dir_, [&](const std::string& name) {
    if (left_over(name)) ::unlink(in(dir_, name).c_str());
  });
}

std::string CheckpointFolder::save(int64_t step, int64_t epoch, const std::vector<TensorView>& tensors,
                                   const Metadata& metadata) {
  const auto last = newest();
  if (last && last->step > step) {
    // Pruning by step would remove the new commit, and newest() would go on naming the old one.
    throw Error(ExitCode::usage, "cannot commit step " + std::to_string(step) + " beside " + last->path +
                                     ": a later step is there; resume from it, or use another folder");
  }
  Metadata complete = metadata;
  complete["step"] = std::to_string(step);
  complete["epoch"] = std::to_string(epoch);

  const std::string path = in(dir_, name_of(step));
  const std::string aside = path + ".tmp-" + std::to_string(::getpid());
  try {
    write_safetensors(aside, tensors, complete);
    if (::rename(aside.c_str(), path.c_str()) != 0) throw_file_error("rename " + aside + " to", path, errno);
  } catch (...) {
    ::unlink(aside.c_str());
    throw;
  }
  sync_folder(dir_);
  prune();
  return path;
}

void CheckpointFolder::prune() const {
  std::vector<Commit> all = commits();
  const auto keep = static_cast<size_t>(keep_);
  for (size_t i = 0; i + keep < all.size(); ++i) {
    // An old commit too many costs space, not correctness: it does not stop the run.
    if (::unlink(all[i].path.c_str()) != 0) {
      log::warning("cannot remove " + all[i].path + ": " + std::generic_category().message(errno));
    }
  }
}

std::vector<Commit> CheckpointFolder::commits() const {
  return list_commits(dir_);
}

std::optional<Commit> CheckpointFolder::newest() const {
  const std::vector<Commit> all = commits();
  return all.empty() ? std::nullopt : std::optional(all.back());
}

}  // namespace ddprun::checkpoint
