// A fake tree of /proc, /sys, /dev and /etc.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "testing/temp_dir.hpp"

namespace ddprun::testing {

class Tree {
 public:
  // The path begins with '/'.
  Tree& file(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = root() + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole, std::ios::binary) << text;
    return *this;
  }
  std::string root() const { return folder_.path().string(); }

 private:
  TempDir folder_;
};

}  // namespace ddprun::testing
