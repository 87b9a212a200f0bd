// The fakes as files, and the errors of searching and opening them.
#pragma once

#include <filesystem>
#include <string>

#include "plugin/registry.hpp"
#include "support/error_of.hpp"
#include "support/paths.hpp"
#include "testing/temp_dir.hpp"

namespace ddprun::plugin {

namespace fs = std::filesystem;
using testing::error_of;
using testing::TempDir;

inline const std::string kFakes = testing::build_dir() + "/tests/fakes";

inline std::string file_of(const std::string& name) {
  return kFakes + "/libddprun_comm_" + name + ".so";
}

inline std::string comm_error(const std::string& name, const std::string& folder = kFakes) {
  return error_of([&] { Registry({folder}).comm(name); });
}

// A folder with a copy of a fake, under the same name.
struct Copy {
  explicit Copy(const std::string& name) : path((folder.path() / fs::path(file_of(name)).filename()).string()) {
    fs::copy_file(file_of(name), path);
  }
  TempDir folder;
  std::string path;
};

}  // namespace ddprun::plugin
