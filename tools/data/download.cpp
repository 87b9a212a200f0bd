#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/file.hpp"
#include "base/log.hpp"
#include "base/sha256.hpp"
#include "base/unique_fd.hpp"
#include "cli/console/program.hpp"
#include "cli/console/progress_bar.hpp"
#include "cli/console/table.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/options.hpp"
#include "tools/data/fetch.hpp"
#include "tools/lib/process.hpp"

namespace ddprun::fetch {
namespace {

namespace fs = std::filesystem;
using console::human_bytes;

std::string sums(const std::string& expected, const std::string& got) {
  return "SHA-256 expected " + expected + ", got " + got;
}

bool exists(const std::string& path) {
  std::error_code fault;
  const bool there = fs::exists(path, fault);
  if (fault) throw_file_error("look at", path, fault.value());
  return there;
}

struct Download {
  const RemoteFile& file;
  const std::string folder;
  const std::string path = (fs::path(folder) / file.name).string();
  const std::string part = path + ".part";

  void run(const std::vector<std::string>& urls) const {
    std::error_code fault;
    fs::create_directories(folder, fault);
    if (fault) throw_file_error("create folder", folder, fault.value());
    UniqueFd locked;
    while (!locked && !exists(path)) locked = lock();
    if (exists(path)) {
      if (locked) fs::remove(part);  // created just when another process finished the file
      return verify();
    }
    std::string reasons;
    for (const std::string& url : urls) {
      const std::string reason = bring_from(url);
      if (reason.empty()) return finish(locked);
      reasons += (reasons.empty() ? "" : "; ") + url + ": " + reason;
    }
    drop_empty_part();
    throw Error(ExitCode::failure, "cannot download " + file.name + ": " + reasons +
                                       "; try --mirror URL, or put the file into " + folder + " by hand");
  }

 private:
  int64_t bytes() const { return static_cast<int64_t>(fs::file_size(part)); }
  void drop_empty_part() const {
    if (bytes() == 0) fs::remove(part);
  }

  // Locks the part against other fetches. Nothing if the owner of the lock has renamed or deleted the part meanwhile.
  UniqueFd lock() const {
    UniqueFd fd(::open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!fd) throw_file_error("create", part, errno);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      log::info(file.name + ": another process fetches it into " + folder + "; waiting for that");
      if (::flock(fd.get(), LOCK_EX) != 0) throw_file_error("lock", part, errno);
    }
    struct stat opened {
    }, named{};
    const bool same = ::fstat(fd.get(), &opened) == 0 && ::stat(part.c_str(), &named) == 0 &&
                      opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
    return same ? std::move(fd) : UniqueFd();
  }

  void verify() const {
    const std::string sum = sha256_of(path);
    if (sum == file.sha256) return log::plain(file.name + ": already verified");
    throw Error(ExitCode::usage, path + " is there, but it is not the published file: " + sums(file.sha256, sum) +
                                     "; move it away and run the command again");
  }

  void finish(const UniqueFd& locked) const {
    if (::fsync(locked.get()) != 0) throw_file_error("write", part, errno);
    if (::rename(part.c_str(), path.c_str()) != 0) throw_file_error("rename " + part + " to", path, errno);
    sync_folder(folder);
    log::plain(file.name + ": downloaded, SHA-256 as published");
  }

  // Returns why this URL failed; empty: the part is the file.
  std::string bring_from(const std::string& url) const {
    const int64_t before = bytes();
    if (before < file.bytes) {
      log::plain(file.name + ": " + human_bytes(file.bytes) + " from " + url +
                 (before > 0 ? ", of which " + human_bytes(before) + " are here" : ""));
      if (const std::string reason = run_curl(url); !reason.empty()) return reason;
    }
    const std::string sum = sha256_of(part);
    if (sum == file.sha256) return "";
    fs::resize_file(part, 0);  // and not removed: the lock is on it
    const std::string wrong = sums(file.sha256, sum);
    if (before == 0) return "it sends another file than the published one: " + wrong;
    log::info(file.name + ": " + part + " was damaged (" + wrong + "); starting from the beginning");
    return bring_from(url);
  }

  // Appends what the part misses. Returns curl's words if it fails.
  std::string run_curl(const std::string& url) const {
    const std::string curl = console::find_program("curl");
    if (curl.empty()) {
      drop_empty_part();
      throw Error(ExitCode::failure, "curl is not installed: apt-get install curl");
    }
    tools::ProcessPlan plan;
    plan.echo = console::terminal_columns() > 0;
    plan.log = part + ".log";
    // --disable: without the user's curlrc. --no-buffer: what came is in the part, however curl ends.
    plan.command = parse_list(
        "--disable --fail --location --globoff --no-buffer --proto =http,https,file --proto-redir =http,https "
        "--retry 3 --connect-timeout 15 --speed-limit 1 --speed-time 30 --continue-at -",
        ' ');
    plan.command.insert(plan.command.begin(), curl);
    const std::string most = std::to_string(file.bytes),
                      progress = plan.echo ? "--progress-bar" : "--no-progress-meter";
    for (const auto& word : {std::string("--max-filesize"), most, std::string("--output"), part, progress, url}) {
      plan.command.push_back(word);
    }
    const tools::ChildEnd end = tools::run_process(plan);
    const std::string reason = end.is_good() ? "" : end.why();
    fs::remove(plan.log);
    if (!end.was_asked()) return reason;
    const std::string word = end.code() == ExitCode::interrupted ? "interrupted" : "terminated";
    const int64_t kept = bytes();
    drop_empty_part();
    throw Error(end.code(), kept == 0 ? word
                                      : word + ": " + part + " holds " + human_bytes(kept) + " of " +
                                            human_bytes(file.bytes) + "; the same command resumes from there");
  }
};

}  // namespace

std::string sha256_of(const std::string& path) {
  constexpr std::size_t kChunk = 1 << 18;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw_file_error("open", path, errno);
  Sha256 sum;
  std::string chunk;
  do {
    chunk.clear();
    if (const int error = read_all(file.get(), chunk, kChunk); error != 0) throw_file_error("read", path, error);
    sum.add(chunk.data(), chunk.size());
  } while (!chunk.empty());
  return sum.hex();
}

void download(const RemoteFile& file, const std::string& folder, const std::vector<std::string>& urls) {
  Download{file, folder}.run(urls);
}

}  // namespace ddprun::fetch
