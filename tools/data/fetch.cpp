#include "tools/data/fetch.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <stdexcept>

#include "base/log.hpp"
#include "cli/console/progress_bar.hpp"
#include "cli/console/units.hpp"
#include "tools/data/download.hpp"

namespace ddprun::fetch {
namespace {

using console::human_bytes;

// Reports the progress of one file.
class Display : public Listener {
 public:
  explicit Display(const RemoteFile& file) : file_(file) {}

  void begins(const std::string& url, int64_t bytes) override {
    start_ = Clock::now();
    first_ = bytes;
    if (console::terminal_columns() > 0) return;
    log::plain(file_.name + ": " + human_bytes(file_.bytes) + " from " + url +
               (bytes > 0 ? ", of which " + human_bytes(bytes) + " are here" : ""));
  }

  void grows(int64_t bytes) override {
    first_ = std::min(first_, bytes);  // a server may make it start again
    bar_.show(file_.name + "  ", bytes, file_.bytes,
              "  " + human_bytes(bytes) + "/" + human_bytes(file_.bytes) + "  " + rate(bytes) + left(bytes));
  }

  void says(const std::string& line) override {
    bar_.clear();
    log::info(file_.name + ": " + line);
  }

  void ends(Outcome outcome) {
    bar_.clear();
    log::plain(file_.name + ": " + text_of(outcome));
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::string text_of(Outcome outcome) const {
    switch (outcome) {
      case Outcome::downloaded:
        return "downloaded, SHA-256 as published, " + console::human_time(seconds()) + ", " + rate(file_.bytes);
      case Outcome::part_was_whole: return "was complete, SHA-256 as published";
      case Outcome::already_verified: return "already verified";
    }
    throw std::logic_error("unknown outcome");
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double bytes_per_second(int64_t bytes) const {
    return static_cast<double>(bytes - first_) / std::max(seconds(), 1e-3);
  }
  std::string rate(int64_t bytes) const { return human_bytes(static_cast<int64_t>(bytes_per_second(bytes))) + "/s"; }
  std::string left(int64_t bytes) const {
    const std::string time =
        console::human_time_left(static_cast<double>(file_.bytes - bytes) / bytes_per_second(bytes));
    return time.empty() ? "" : "  " + time;
  }

  const RemoteFile& file_;
  console::ProgressBar bar_;
  Clock::time_point start_ = Clock::now();
  int64_t first_ = 0;  // what was there at the start
};

std::vector<std::string> bases_of(const DataSet& set, std::string mirror) {
  if (mirror.empty()) return set.bases;
  constexpr std::array<std::string_view, 3> schemes{"http://", "https://", "file://"};
  if (std::none_of(schemes.begin(), schemes.end(),
                   [&](std::string_view scheme) { return mirror.starts_with(scheme); })) {
    throw Error(ExitCode::usage,
                "--mirror " + mirror + ": expected a URL that begins with http://, https:// or file:///");
  }
  if (std::any_of(mirror.begin(), mirror.end(), [](unsigned char c) { return c <= ' ' || c == 0x7f; })) {
    throw Error(ExitCode::usage, "--mirror " + mirror + ": a URL has no spaces; write %20 for each");
  }
  if (mirror.back() != '/') mirror += '/';
  return {mirror};
}

std::string how_to_use(const DataSet& set, const std::string& root) {
  const std::string text = set.name + " is in " + root + ": set data.name = \"" + set.name + "\"";
  return set.found_in_root && root == set.root
             ? text
             : text + " and data.root = \"" + std::filesystem::absolute(root).string() + "\"";
}

}  // namespace

std::string fetch(const DataSet& set, const FetchOptions& options) {
  const std::string root = options.root.empty() ? set.root : options.root;
  const std::vector<std::string> bases = bases_of(set, options.mirror);
  Stop stop;
  for (const RemoteFile& file : set.files) {
    std::vector<std::string> urls;
    for (const std::string& base : bases) urls.push_back(base + file.name);
    Display display(file);
    display.ends(download(file, root, urls, options.limits, stop, display));
  }
  return how_to_use(set, root);
}

}  // namespace ddprun::fetch
