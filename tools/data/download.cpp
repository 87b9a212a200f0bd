#include "tools/data/fetch.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "base/file.hpp"
#include "cli/console/units.hpp"

namespace ddprun::fetch {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLookAgain{200};
constexpr int kMostDoublings = 4;

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
  const std::string path;  // of the file
  const Limits& limits;
  Stop& stop;
  Listener& listener;
  std::unique_ptr<PartFile> part{};

  Outcome run(const std::vector<std::string>& urls) {
    stop.check();
    std::error_code fault;
    fs::create_directories(folder, fault);
    if (fault) throw_file_error("create folder", folder, fault.value());
    if (!claim()) {
      const std::string sum = sum_of(path);
      if (sum == file.sha256) return Outcome::already_verified;
      throw Error(ExitCode::usage, path + " is there, but it is not the published file: " + sums(file.sha256, sum) +
                                       "; move it away and run the command again");
    }
    const Outcome outcome = fill(urls);
    part->finish();
    return outcome;
  }

  // Locks the part. False: the final file exists.
  bool claim() {
    for (bool reported = false; !exists(path); reported = true) {
      part = PartFile::lock(path);
      if (part && !exists(path)) return true;
      if (part) {
        part->remove();  // created just when another process finished the file
        return false;
      }
      if (!reported) listener.report("another process fetches it into " + folder + "; waiting for that");
      if (const auto code = stop.within(kLookAgain)) throw Error(*code, word(*code));
    }
    return false;
  }

  // Downloads until the part is complete and becomes the file.
  Outcome fill(const std::vector<std::string>& urls) {
    if (part->bytes() >= file.bytes) {
      if (sum_of(part->path()) == file.sha256) return Outcome::part_was_whole;
      start_again(part->path() + (part->bytes() > file.bytes ? " is longer than the file" : " is damaged"));
    }
    std::string reasons;
    for (const std::string& url : urls) {
      const std::string reason = bring_from(url);
      if (reason.empty()) return Outcome::downloaded;
      reasons += (reasons.empty() ? "" : "; ") + url + ": " + reason;
      if (&url != &urls.back()) listener.report(url + ": " + reason + "; trying the next source");
    }
    if (part->bytes() == 0) part->remove();
    throw Error(ExitCode::failure, "cannot download " + file.name + ": " + reasons +
                                       "; try --mirror URL, or put the file into " + folder + " by hand");
  }

  std::string sum_of(const std::string& path) {
    return sha256_of(path, [this] { stop.check(); });
  }

  void start_again(const std::string& why) {
    listener.report(why + "; starting from the beginning");
    part->restart();
  }

  // Fills the part and compares the sum. Returns why this URL failed; empty: the part is the file.
  std::string bring_from(const std::string& url) {
    while (true) {
      const bool has_others = part->bytes() > 0;  // bytes of an earlier attempt, or of another source
      const std::string reason = take_from(url);
      if (!reason.empty()) return reason;
      const std::string sum = sum_of(part->path());
      if (sum == file.sha256) return "";
      const std::string wrong = sums(file.sha256, sum);
      if (!has_others) {
        part->restart();
        return "it sends another file than the published one: " + wrong;
      }
      start_again("the part before " + url + " seems to be damaged (" + wrong + ")");
    }
  }

  // Requests until the part is full. Returns why this URL failed; empty: the part is full.
  std::string take_from(const std::string& url) {
    listener.begins(url, part->bytes());
    bool answered = false;
    for (int attempt = 1;;) {
      const int64_t before = part->bytes();
      const Ending ending =
          transfer(url, *part, file.bytes, limits, stop, [&](int64_t bytes) { listener.grows(bytes); });
      if (ending.kind == Ending::Kind::whole) return "";
      if (ending.kind == Ending::Kind::stopped) leave(*stop.asked());
      if (ending.kind == Ending::Kind::cut) answered = true;
      // A host that has answered before may soon be back; a host that never answered is not tried again.
      if (ending.kind == Ending::Kind::failed || !answered) return ending.reason;
      attempt = part->bytes() - before >= limits.progress ? 1 : attempt + 1;
      if (attempt > limits.attempts) {
        return ending.reason + " (" + std::to_string(limits.attempts) + " attempts)";
      }
      wait(url, ending.reason, attempt);
    }
  }

  void wait(const std::string& url, const std::string& reason, int attempt) {
    const auto time = limits.backoff * (1 << std::clamp(attempt - 2, 0, kMostDoublings));
    listener.report(url + ": " + reason + "; trying again in " +
                    console::human_time(std::chrono::duration<double>(time).count()) + ", after byte " +
                    std::to_string(part->bytes()));
    if (const auto code = stop.within(time)) leave(*code);
  }

  [[noreturn]] void leave(ExitCode code) {
    if (part->bytes() == 0) {
      part->remove();
      throw Error(code, word(code));
    }
    throw Error(code, word(code) + ": " + part->path() + " holds " + console::human_bytes(part->bytes()) + " of " +
                          console::human_bytes(file.bytes) + "; the same command resumes from there");
  }
};

}  // namespace

Outcome download(const RemoteFile& file, const std::string& folder, const std::vector<std::string>& urls,
                 const Limits& limits, Stop& stop, Listener& listener) {
  return Download{file, folder, (fs::path(folder) / file.name).string(), limits, stop, listener}.run(urls);
}

}  // namespace ddprun::fetch
