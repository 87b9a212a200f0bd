// What the command lists: its help, its versions, and the plugins.
#include <doctest/doctest.h>
#include <CLI/Version.hpp>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <regex>

#include "e2e/program.hpp"
#include "support/golden.hpp"
#include "support/paths.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

// How many lines of the text match the pattern.
int count_lines(const std::string& text, const std::string& pattern) {
  const auto lines = lines_of(text);
  return static_cast<int>(std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
    return std::regex_match(line, std::regex(pattern));
  }));
}

}  // namespace

TEST_CASE("a LibTorch that cannot be read is one line that names it, and the help needs none") {
  Workplace place;
  const auto without_torch = [&](const std::string& argument) {
    return place.run({"/usr/bin/unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs \"$0\" && exec \"$@\"",
                      DDPRUN_TORCH_LIB, program(), argument});
  };
  const auto help = without_torch("--help");
  if (contains(help.err, "unshare: ") || contains(help.err, "mount: ")) {
    std::cout << "skipped: this user may not mount: " << help.err;
    return;
  }
  CHECK_MESSAGE(help.code == 0, help.err);
  const auto version = without_torch("--version");
  CHECK(version.code == 1);
  CHECK_MESSAGE(version.err.starts_with("ddprun: failed: cannot read LibTorch, " DDPRUN_TORCH_LIB
                                        "/libtorch_cpu.so: No such file or directory; let this user read it, or "),
                version.err);
  CHECK(lines_of(version.err).size() == 1);
}

TEST_CASE("without its engine, ddprun lists plugins and shows its version, and says that it cannot train") {
  Workplace place;
  const auto alone = (place.folder() / "bin/ddprun").string();
  std::filesystem::create_directories(std::filesystem::path(alone).parent_path());
  std::filesystem::copy_file(program(), alone);
  CHECK(contains(place.run({alone, "--version"}).out, "\ntorch none\n"));
  const auto plugins = place.run({alone, "plugins"});
  CHECK_MESSAGE(contains(plugins.out, "linear"), plugins.err);
  const std::vector<std::vector<std::string>> commands = {{alone, "validate", "x.toml"},
                                                          {alone, "evaluate", "--checkpoint", "x"}};
  for (const auto& command : commands) {
    const auto refused = place.run(command);
    CHECK(refused.code == 1);
    CHECK_MESSAGE(contains(refused.err, "this ddprun was built without LibTorch (DDPRUN_TORCH=OFF): "), refused.err);
    CHECK(lines_of(refused.err).size() == 1);
  }
}

TEST_CASE("without arguments the help goes to stderr, and the code is that of a usage error") {
  const auto result = Workplace().ddprun({});
  CHECK(result.code == 2);
  CHECK(result.out.empty());
  CHECK(contains(result.err, "--config FILE"));
}

TEST_CASE("ddprun itself does not load LibTorch, which takes longer than what it does") {
  const auto libraries = Process({"/usr/bin/ldd", program()}, {}).wait(std::chrono::seconds(60));
  CHECK(libraries.code == 0);
  CHECK_MESSAGE(!contains(libraries.out, "torch"), libraries.out);
  CHECK(contains(libraries.out, "libstdc++"));
}

TEST_CASE("the help goes to stdout, and is as in help.txt") {
  // CLI11 2.4 writes "TEXT [cpu]" for "TEXT=cpu", and other empty lines.
  const bool is_like_file = std::string_view(CLI11_VERSION) < "2.2";
  std::string text;
  for (const Argv& command : {Argv{}, {"validate"}, {"evaluate"}, {"launch"}, {"plugins"}}) {
    const auto result = Workplace().ddprun(command + Argv{"--help"});
    CHECK(result.code == 0);
    CHECK(result.err.empty());
    CHECK(contains(result.out, "--help"));
    text += "$ ddprun " + (command.empty() ? "" : command[0] + " ") + "--help\n" + result.out + "\n";
  }
  if (!is_like_file)
    return void(std::cout << "skipped: help.txt is as CLI11 2.1 writes it; this is " CLI11_VERSION "\n");
  check_golden("e2e/help.txt", text);
}

TEST_CASE("the help of every tool that loads plugins says where they are searched") {
  for (const Argv& command : std::vector<Argv>{{"bench"},
                                               {"compare"},
                                               {"doctor"},
                                               {"data", "info"},
                                               {"conformance"},
                                               {"conformance", "--dataset", "linear"},
                                               {"conformance", "--model", "linear"}}) {
    const auto result = Workplace().ddprun(command + Argv{"--help"});
    CAPTURE(result.out);
    CHECK(result.code == 0);
    CHECK(contains(result.out, "--plugin-path DIR"));
    CHECK(contains(result.out, "Plugins are searched in these folders, in this order:\n"));
  }
}

TEST_CASE("--version prints the versions of ddprun, Torch and the compiler") {
  const auto result = Workplace().ddprun({"--version"});
  CHECK(result.code == 0);
  for (const char* line : {"ddprun \\d+\\.\\d+\\.\\d+", "torch \\d+\\.\\d+\\.\\d+.*", "compiler .*\\d+\\.\\d+.*"}) {
    CHECK_MESSAGE(count_lines(result.out, line) == 1, line);
  }
}

TEST_CASE("plugins lists kind, name, versions, description and path; with --verbose, the options too") {
  const auto result = Workplace().ddprun({"plugins", "--verbose"});
  CHECK(result.code == 0);
  for (const char* line :
       {"kind +name +version +library +about +path", "comm +gloo +\\S+ +gloo \\d.*ring tree.*/libddprun_comm_gloo.so",
        "model +linear +\\S+ +torch \\d.*/libddprun_model_linear.so",
        "comm.options of gloo:", "  interface +a string +- +the network interface .*",
        "model.options of simplenet:", "  hidden +an integer from 1 to 1000000 +256 +width .*",
        "model.options of linear: none", "data.options of mnist:", "  std +a list of numbers from 1e-6 to 1e6 +1 .*"}) {
    CHECK_MESSAGE(count_lines(result.out, line) > 0, line << " in " << result.out);
  }
}

TEST_CASE("plugins in a folder named by --plugin-path are listed, and a broken one is refused with its reason") {
  Workplace place;
  std::filesystem::create_directory(place.folder() / "mine");
  std::ofstream(place.folder() / "mine/libddprun_comm_mine.so") << "not a library";
  const auto result = place.ddprun({"plugins", "--plugin-path", (place.folder() / "mine").string()});
  CHECK(result.code == 0);
  CHECK_MESSAGE(count_lines(result.out, ".*mine.*refused.*cannot be loaded.*") == 1, result.out);
}

TEST_CASE("plugins lists those in the user's own folder, and says which one another hides") {
  Workplace place;
  const auto folder = place.folder() / "data/ddprun/plugins/v1";
  std::filesystem::create_directories(folder);
  for (const char* name : {"good", "gloo"}) {
    std::filesystem::copy_file(build_dir() + "/tests/fakes/libddprun_comm_good.so",
                               folder / ("libddprun_comm_" + std::string(name) + ".so"));
  }
  const auto result = place.ddprun({"plugins", "--verbose"});
  CHECK(result.code == 0);
  const std::string own = std::filesystem::path(program()).parent_path().parent_path() / "lib/ddprun/v1";
  for (const std::string& line : {"comm +good +1\\.2\\.3 .*" + folder.string() + "/libddprun_comm_good.so",
                                  "comm +gloo +- +- +hidden by " + own + "/libddprun_comm_gloo.so +" + folder.string() +
                                      "/libddprun_comm_gloo.so",
                                  "looked in " + own + ", " + folder.string() + ", /usr/local/lib/ddprun/v1.*"}) {
    CHECK_MESSAGE(count_lines(result.out, line) == 1, line << " in " << result.out);
  }
}

TEST_CASE("output that a full stdout does not take ends with 1 and one line") {
  if (!std::filesystem::is_character_file("/dev/full")) {
    std::cout << "skipped: there is no /dev/full" << std::endl;
    return;
  }
  Workplace place;
  const std::string config = place.config(kLinearOnTwoRanks);
  const auto check = [&](const Argv& argv) {
    CAPTURE(argv.back());
    const auto result = place.run(Argv{"/bin/bash", "-c", "exec \"$0\" \"$@\" > /dev/full"} + argv);
    CHECK(result.code == 1);
    CHECK_MESSAGE(contains(last_line(result.err), "ddprun: failed: cannot write the output to stdout"), result.err);
  };
  const std::string ddprun = place.training(config).front();
  for (const Argv& arguments :
       std::vector<Argv>{{"--help"},
                         {"--version"},
                         {"plugins"},
                         {"validate", config},
                         {"bench", "--help"},
                         {"bench", "-b", "4", "-e", "4", "-n", "1", "-w", "0", "--rounds", "1"}}) {
    check(Argv{ddprun} + arguments);
  }
  check(place.training(config, {"data.options.samples=64"}));
  place.new_run();
  check(place.training(config, {"strategy.kind=single", "data.options.samples=64"}));
  check({ddprun, "evaluate", "--checkpoint", place.new_run().string()});
}
