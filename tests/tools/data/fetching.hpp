// Calls download() for tests, with small limits, and keeps its messages.
#pragma once

#include <string>
#include <vector>

#include "support/error_of.hpp"
#include "support/text.hpp"
#include "tools/data/fetch.hpp"
#include "tools/data/server.hpp"
#include "tools/data/some_file.hpp"

namespace ddprun::testing {

// Keeps the messages of a download.
struct Messages : fetch::Listener {
  void begins(const std::string& url, int64_t bytes) override { begun.emplace_back(url, bytes); }
  void grows(int64_t bytes) override { last = bytes; }
  void report(const std::string& line) override { lines.push_back(line); }

  std::vector<std::pair<std::string, int64_t>> begun;
  int64_t last = 0;
  std::vector<std::string> lines;
};

inline fetch::Limits quick() {
  fetch::Limits limits;
  limits.attempts = 3;
  limits.backoff = std::chrono::milliseconds(1);
  return limits;
}

inline fetch::Limits quick_to_see_a_stall(std::chrono::seconds stall) {
  fetch::Limits limits = quick();
  limits.stall = stall;
  return limits;
}

// One file and its server.
class Fetching {
 public:
  Fetching() : server(file.served()) {}

  // "downloaded", "was complete", "already verified", or "<exit code>: <error>".
  std::string from(const std::vector<std::string>& behaviours, const fetch::Limits& limits = quick()) {
    std::vector<std::string> urls;
    for (const std::string& behaviour : behaviours) urls.push_back(url(behaviour));
    return from_urls(urls, limits);
  }
  std::string from_urls(const std::vector<std::string>& urls, const fetch::Limits& limits = quick()) {
    auto outcome = fetch::Outcome::downloaded;
    fetch::Stop stop;
    const std::string error = error_of(
        [&] { outcome = fetch::download(file.remote(), file.folder().string(), urls, limits, stop, messages); });
    if (error != "no error") return error;
    if (outcome == fetch::Outcome::part_was_whole) return "was complete";
    return outcome == fetch::Outcome::downloaded ? "downloaded" : "already verified";
  }

  std::string url(const std::string& behaviour) const { return server.base(behaviour) + kName; }
  // "200 100" or "bytes=50- 206 50" for each request, without its path.
  std::vector<std::string> answers() const {
    std::vector<std::string> answers;
    for (const std::string& line : server.requests()) answers.push_back(line.substr(line.find(' ') + 1));
    return answers;
  }
  bool reported(const std::string& part) const {
    return std::any_of(messages.lines.begin(), messages.lines.end(),
                       [&](const auto& line) { return contains(line, part); });
  }

  SomeFile file;
  Server server;
  Messages messages;
};

}  // namespace ddprun::testing
