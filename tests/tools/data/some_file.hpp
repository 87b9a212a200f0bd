// A file to fetch, its published data, and a target folder.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "support/read_file.hpp"
#include "testing/temp_dir.hpp"
#include "tools/data/fetch.hpp"

namespace ddprun::testing {

constexpr const char* kName = "some.gz";

inline std::string sha256_of(const std::string& text) {
  const TempDir folder;
  return fetch::sha256_of(folder.write("text", text));
}

class SomeFile {
 public:
  explicit SomeFile(std::size_t bytes = 300'000) {
    std::minstd_rand random(7);
    std::generate_n(std::back_inserter(content_), bytes, [&] { return static_cast<char>(random()); });
    served_.write(kName, content_);
    remote_ = {kName, static_cast<int64_t>(bytes), sha256_of(content_)};
  }

  const std::string& content() const { return content_; }
  const fetch::RemoteFile& remote() const { return remote_; }
  const std::filesystem::path& served() const { return served_.path(); }
  const std::filesystem::path& folder() const { return fetched_.path(); }

  std::filesystem::path path() const { return folder() / kName; }
  std::filesystem::path part() const { return folder() / (std::string(kName) + ".part"); }
  void leave_part(const std::string& text) const { fetched_.write(std::string(kName) + ".part", text); }
  bool arrived() const { return std::filesystem::exists(path()) && read_file(path()) == content_; }

  // The names in the folder, in order.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder())) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  TempDir served_;
  TempDir fetched_;
  std::string content_;
  fetch::RemoteFile remote_;
};

}  // namespace ddprun::testing
