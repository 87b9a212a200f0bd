// Starts server.py on a folder of files for one test, and returns the requests that it received.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/paths.hpp"
#include "support/process.hpp"
#include "support/read_file.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::testing {

class Server {
 public:
  explicit Server(const std::filesystem::path& folder)
      : process_(
            {DDPRUN_SYSTEM_PYTHON, testing::source_dir() + "/tests/tools/data/server.py", folder.string(), log_path()},
            {}) {
    setenv("no_proxy", "127.0.0.1", 1);  // the host's proxy cannot reach a test's server
    const auto ready = [this] { return process_.out().ends_with('\n'); };
    if (!eventually(ready)) throw std::runtime_error("the server does not start: " + process_.err());
    port_ = process_.out().substr(0, process_.out().size() - 1);
  }

  // The base URL of files served with `behaviour`: "http://127.0.0.1:1234/plain/".
  std::string base(const std::string& behaviour) const { return "http://127.0.0.1:" + port_ + "/" + behaviour + "/"; }
  // "/plain/name - 200 100", for each request so far: path, Range, status, bytes of the body.
  std::vector<std::string> requests() const {
    return std::filesystem::exists(log_path()) ? read_lines(log_path()) : std::vector<std::string>{};
  }

 private:
  std::string log_path() const { return (folder_.path() / "log").string(); }

  TempDir folder_;
  Process process_;
  std::string port_;
};

}  // namespace ddprun::testing
