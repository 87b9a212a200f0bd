// ddprun-new: writes the project of a new plugin, from the templates in share/ddprun/templates.
#include <boost/algorithm/string/replace.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "cli/console/command_line.hpp"
#include "cli/console/program.hpp"
#include "ddprun/error.hpp"
#include "ddprun/plugin/comm_plugin.h"

namespace ddprun::make {
namespace {

namespace fs = std::filesystem;

// The words in the templates, "@NAME@" and so on, with their values. They are replaced in this order.
using Words = std::vector<std::pair<std::string, std::string>>;

struct Arguments {
  std::string kind;
  std::string name;
  std::string language = "c++";
  std::string folder;
};

std::string replaced(std::string text, const Words& words) {
  for (const auto& [word, value] : words) boost::algorithm::replace_all(text, word, value);
  return text;
}

// The error for a name that cannot be part of a file's name and of a CMake target, or "".
std::string is_name(const std::string& text) {
  if (std::regex_match(text, std::regex("[a-z][a-z0-9_]*"))) return "";
  return text + ": expected small letters, digits and _, and first a letter, as in my_plugin";
}

Words substitutions(const Arguments& arguments, const std::string& prefix) {
  const bool model = arguments.kind == "model", c = arguments.language == "c", rust = arguments.language == "rust";
  const std::string example = model ? "lenet" : c ? "tcp_ring" : rust ? "tcp_rust" : "tcp_direct";
  const std::string c_sources = ".c ring_join.c ring_news.c ring_pipeline.c ring_reduce.c";
  const std::string source = rust ? "lib.rs" : arguments.name + (c ? c_sources : ".cpp");
  const std::string presets = model ? "release" : rust ? "release, debug" : "release, asan, tsan";
  // First the name of the example that the project begins with: a user's name may contain it.
  return {{example, arguments.name},
          {"@NAME@", arguments.name},
          {"@KIND@", arguments.kind},
          {"@SOURCE@", source},
          {"@LANGUAGE@", c ? "C" : "CXX"},
          {"@VERSION@", DDPRUN_SERIES},
          {"@COMPONENTS@", model ? " COMPONENTS model" : ""},
          {"@CONFORMANCE_ARGS@", model ? " ARGS --data-option shape=1x28x28 --data-option classes=10" : ""},
          {"@CI_PRESETS@", presets},
          {"@PLUGIN_FOLDER@", DDPRUN_PLUGIN_FOLDER},
          {"@PREFIX@", prefix}};
}

// Keeps the files of an earlier template.
void copy_template(const fs::path& from, const fs::path& to, const Words& words) {
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    const fs::path target = to / replaced(entry.path().lexically_relative(from).string(), words);
    if (entry.is_directory()) {
      fs::create_directories(target);
      continue;
    }
    if (fs::exists(target)) continue;
    const std::string text = replaced(read_text(entry.path()), words);
    std::ofstream file(target, std::ios::binary);
    file << text;
    file.close();
    if (!file) throw Error(ExitCode::usage, "cannot write " + target.string());
  }
}

ExitCode write_project(const Arguments& arguments) {
  const fs::path here = fs::path(console::this_program()).parent_path().parent_path();
  // A build folder has the layout of a prefix, but find_package(ddprun) needs an installed one.
  const bool is_installed = fs::exists(here / "lib/cmake/ddprun/ddprunConfig.cmake");
  const std::string prefix = is_installed ? here.string() : "$HOME/.local";
  const fs::path templates = here / "share/ddprun/templates";
  const fs::path folder = arguments.folder.empty() ? arguments.name : arguments.folder;
  if (arguments.kind != "comm" && arguments.language != "c++") {
    throw Error(ExitCode::usage, "--language: only a communication backend can be written in C or Rust; leave it out");
  }
  if (fs::exists(folder) && !fs::is_empty(folder)) {
    throw Error(ExitCode::usage, folder.string() + ": exists already; choose another folder with --folder");
  }
  if (!fs::is_directory(templates)) {
    throw Error(ExitCode::failure, templates.string() + ": not found; install ddprun again");
  }
  fs::create_directories(folder);
  for (const std::string& part : {arguments.kind + "-" + arguments.language, arguments.kind, std::string("common")}) {
    copy_template(templates / part, folder, substitutions(arguments, prefix));
  }
  std::cout << "wrote " << folder.string() << ".\n";
  if (!is_installed) {
    std::cout << "It needs an installed ddprun, and this one is not installed. To install it, here into ~/.local:\n"
              << "  cmake --build " << here.string() << " --target product\n"
              << "  cmake --install " << here.string() << " --prefix " << prefix << '\n';
  }
  std::cout << "To build and test the project:\n"
            << "  cd " << folder.string() << '\n'
            << "  cmake --preset release -DCMAKE_PREFIX_PATH=" << prefix << '\n'
            << "  cmake --build --preset release\n"
            << "  ctest --preset release\n"
            << "To let ddprun find it without --plugin-path:\n"
            << "  cmake --install build/release --component user\n";
  return ExitCode::ok;
}

ExitCode run_program(int argc, char** argv) {
  const auto cli = console::tool_command("new");
  cli->footer("Exit codes: 0 written, 2 usage.");
  Arguments arguments;
  cli->add_option("kind", arguments.kind, "The kind: comm (a communication backend), model or dataset.")
      ->required()
      ->check(CLI::IsMember({"comm", "model", "dataset"}));
  cli->add_option("name", arguments.name, "The name of the plugin.")
      ->required()
      ->check(CLI::Validator(is_name, "NAME"));
  cli->add_option("--language", arguments.language, "The language of a backend: c, c++ or rust. The default is c++.")
      ->check(CLI::IsMember({"c", "c++", "rust"}));
  cli->add_option("--folder", arguments.folder, "Write it into this folder. The default is a new folder NAME.")
      ->type_name("DIR");
  if (const auto end = console::parse(*cli, argc, argv)) return *end;
  try {
    return write_project(arguments);
  } catch (const fs::filesystem_error& error) {
    throw Error(ExitCode::usage, error.what());
  }
}

}  // namespace
}  // namespace ddprun::make

int main(int argc, char** argv) {
  return ddprun::console::run_program([&] { return ddprun::make::run_program(argc, argv); });
}
