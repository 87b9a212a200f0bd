// A folder that is removed with its object.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace ddprun::testing {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ddprun-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + pattern);
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Writes a file into the folder and returns its path.
  std::string write(const std::string& name, const std::string& content) const {
    const auto file = path_ / name;
    std::ofstream(file, std::ios::binary) << content;
    return file.string();
  }

 private:
  std::filesystem::path path_;
};

// A TempDir that is the current directory meanwhile.
class InTempDir : public TempDir {
 public:
  InTempDir() : before_(std::filesystem::current_path()) { std::filesystem::current_path(path()); }
  ~InTempDir() {
    std::error_code ignored;
    std::filesystem::current_path(before_, ignored);
  }

 private:
  const std::filesystem::path before_;
};

}  // namespace ddprun::testing
