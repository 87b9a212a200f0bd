// Calls download() for tests.
#pragma once

#include <string>
#include <vector>

#include "support/error_of.hpp"
#include "support/text.hpp"
#include "tools/data/fetch.hpp"
#include "tools/data/server.hpp"
#include "tools/data/some_file.hpp"

namespace ddprun::testing {

// One file and its server.
class Fetching {
 public:
  Fetching() : server(file.served()) {}

  // "no error" or "<exit code>: <error>".
  std::string from(const std::vector<std::string>& behaviours) {
    std::vector<std::string> urls;
    for (const std::string& behaviour : behaviours) urls.push_back(url(behaviour));
    return from_urls(urls);
  }
  std::string from_urls(const std::vector<std::string>& urls) {
    return error_of([&] { fetch::download(file.remote(), file.folder().string(), urls); });
  }

  std::string url(const std::string& behaviour) const { return server.base(behaviour) + kName; }
  // "200 100" or "bytes=50- 206 50" for each request, without its path.
  std::vector<std::string> answers() const {
    std::vector<std::string> answers;
    for (const std::string& line : server.requests()) answers.push_back(line.substr(line.find(' ') + 1));
    return answers;
  }

  SomeFile file;
  Server server;
};

}  // namespace ddprun::testing
