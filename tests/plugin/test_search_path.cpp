// Which folders are searched, in which order, and what a name means there.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ddprun/plugin/comm_plugin.h"
#include "fake_files.hpp"
#include "plugin/registry.hpp"

namespace ddprun::plugin {
namespace {

// The variables of the search path, as they were before, when it ends.
class SearchVariables {
 public:
  SearchVariables() {
    for (const char* name : {"DDPRUN_PLUGIN_PATH", "XDG_DATA_HOME", "HOME"}) {
      const char* const value = std::getenv(name);
      before_[name] = value != nullptr ? std::optional<std::string>(value) : std::nullopt;
      ::unsetenv(name);
    }
  }
  ~SearchVariables() {
    for (const auto& [name, value] : before_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

const std::string kOwn =
    fs::path(fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib/ddprun" / DDPRUN_PLUGIN_FOLDER)
        .string();
const std::string kMachine = "/usr/local/lib/ddprun/v1";

}  // namespace

TEST_CASE("a plugin of an earlier folder hides one of the same name, but a broken link does not") {
  const Copy first("good"), second("good");
  const std::string a = first.folder.path().string(), b = second.folder.path().string();
  const std::string throwing = "/libddprun_comm_throwing.so";
  fs::create_symlink("/nonexistent/file", a + throwing);
  fs::copy_file(file_of("throwing"), b + throwing);
  const Registry registry({a, b});
  std::map<std::string, Listed> listed;
  for (const Listed& one : registry.list()) listed[one.path] = one;
  REQUIRE(listed.size() == 4);
  CHECK(listed[first.path].hidden_by.empty());
  CHECK(listed[second.path].hidden_by == first.path);
  CHECK(std::get<std::string>(listed[second.path].content).empty());
  CHECK(listed[b + throwing].hidden_by.empty());
  CHECK(registry.comm("throwing").path == b + throwing);
}

TEST_CASE("a folder that is named twice, by a link or with a slash at its end, is searched once") {
  const Copy good("good");
  const TempDir links;
  const std::string folder = good.folder.path().string(), link = (links.path() / "plugins").string();
  fs::create_directory_symlink(folder, link);
  const Registry registry({folder + "/", link, folder, "/nonexistent", "/nonexistent/"});
  CHECK(registry.folders() == std::vector<std::string>{folder, "/nonexistent"});
  CHECK(registry.list().size() == 1);
}

TEST_CASE("the standard search path: folders of the option, the variable, the program, the user, the machine") {
  const SearchVariables variables;
  const TempDir first, second;
  const std::string a = first.path(), b = second.path();
  ::setenv("DDPRUN_PLUGIN_PATH", ("/c::" + a + ":relative").c_str(), 1);
  ::setenv("XDG_DATA_HOME", "/data", 1);
  CHECK(Registry::standard({a, b}).folders() == std::vector<std::string>{a, b, "/c",
                                                                         (fs::current_path() / "relative").string(),
                                                                         kOwn, "/data/ddprun/plugins/v1", kMachine});
  ::unsetenv("DDPRUN_PLUGIN_PATH");
  CHECK(error_of([&] {
          Registry::standard({a, b + "/nowhere"});
        }) == "2: --plugin-path " + b + "/nowhere: no such folder");
}

TEST_CASE("the user's folder follows the XDG Base Directory Specification") {
  const SearchVariables variables;
  const auto user = []() -> std::string {
    const auto folders = Registry::standard({}).folders();
    REQUIRE(folders.size() >= 2);
    CHECK(folders.front() == kOwn);
    CHECK(folders.back() == kMachine);
    return folders.size() == 3 ? folders[1] : "";
  };
  CHECK(user() == "");
  ::setenv("HOME", "/home/me", 1);
  CHECK(user() == "/home/me/.local/share/ddprun/plugins/v1");
  ::setenv("XDG_DATA_HOME", "", 1);
  CHECK(user() == "/home/me/.local/share/ddprun/plugins/v1");
  ::setenv("XDG_DATA_HOME", "data", 1);
  CHECK(user() == "/home/me/.local/share/ddprun/plugins/v1");
  ::setenv("XDG_DATA_HOME", "/data/", 1);
  CHECK(user() == "/data/ddprun/plugins/v1");
  ::unsetenv("HOME");
  CHECK(user() == "/data/ddprun/plugins/v1");
  ::setenv("XDG_DATA_HOME", "data", 1);
  CHECK(user() == "");
}

TEST_CASE("a user's plugin does not replace the program's, and that of DDPRUN_PLUGIN_PATH does") {
  const SearchVariables variables;
  const TempDir data;
  const fs::path folder = data.path() / "ddprun/plugins" / DDPRUN_PLUGIN_FOLDER;
  fs::create_directories(folder);
  for (const char* name : {"gloo", "good"}) {
    fs::copy_file(file_of("good"), folder / ("libddprun_comm_" + std::string(name) + ".so"));
  }
  ::setenv("XDG_DATA_HOME", data.path().c_str(), 1);
  CHECK(Registry::standard({}).comm("good").path == (folder / "libddprun_comm_good.so").string());
  const std::string gloo = kOwn + "/libddprun_comm_gloo.so";
  CHECK(Registry::standard({}).comm("gloo").path == gloo);
  for (const Listed& listed : Registry::standard({}).list()) {
    if (listed.path == (folder / "libddprun_comm_gloo.so").string()) CHECK(listed.hidden_by == gloo);
  }
  ::setenv("DDPRUN_PLUGIN_PATH", kFakes.c_str(), 1);
  CHECK(Registry::standard({}).comm("good").path == file_of("good"));
}

}  // namespace ddprun::plugin
