// Subcommands that are separate programs.
#include <doctest/doctest.h>

#include <algorithm>

#include "e2e/program.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kLimit{60};

// A folder on PATH with a third-party tool in it: a script.
class Path {
 public:
  void add(const std::string& name, const std::string& script) const {
    folder_.write(name, "#!/bin/sh\n" + script + "\n");
    fs::permissions(folder_.path() / name, fs::perms::owner_all);
  }
  ProcessResult ddprun(const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv = {program()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return Process(argv, {"PATH=" + folder_.path().string() + ":/usr/bin:/bin"}).wait(kLimit);
  }

 private:
  TempDir folder_;
};

// The line of the help that begins with this word; "" for none.
std::string line_of(const std::string& help, const std::string& word) {
  for (const std::string& line : lines_of(help)) {
    if (line.starts_with("  " + word + " ")) return line;
  }
  return "";
}

}  // namespace

TEST_CASE("a tool on PATH is a subcommand: it gets the arguments, and its exit code is ddprun's") {
  const Path path;
  path.add("ddprun-hello", "echo \"hello: $#: $1: $2\"; exit 7");
  const auto result = path.ddprun({"hello", "a b", "--config"});
  CHECK(result.code == 7);
  CHECK(result.out == "hello: 2: a b: --config\n");
  CHECK(result.err.empty());
}

TEST_CASE("a tool in ddprun's own folder comes before one on PATH") {
  const Path path;
  path.add("ddprun-data", "echo wrong");
  const auto result = path.ddprun({"data", "--help"});
  CHECK(result.code == 0);
  CHECK(contains(result.out, "ddprun data"));
  CHECK_FALSE(contains(result.out, "wrong"));
}

TEST_CASE("help lists the commands and the found tools, each with a line of its own help") {
  const Path path;
  path.add("ddprun-hello", "echo Say hello; echo more");
  path.add("ddprun-silent", "sleep 600");
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"help"}, {"--help"}}) {
    const auto result = path.ddprun(arguments);
    CHECK(result.code == 0);
    CHECK(contains(line_of(result.out, "validate"), "Check an experiment"));
    CHECK(contains(line_of(result.out, "bench"), "Measure collectives"));
    CHECK(contains(line_of(result.out, "hello"), "Say hello"));
    CHECK_FALSE(contains(result.out, "more\n"));
    CHECK_FALSE(line_of(result.out, "silent").empty());
  }
}

TEST_CASE("help NAME prints the help of a command or of a tool") {
  const Workplace place;
  CHECK(contains(place.ddprun({"help", "validate"}).out, "ddprun validate [OPTIONS] [file]"));
  CHECK(place.ddprun({"help", "bench"}).out == place.ddprun({"bench", "--help"}).out);
  const auto refused = place.ddprun({"help", "benhc"});
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "unknown argument \"benhc\" (did you mean \"bench\"?)"));
}

TEST_CASE("a name that is neither a command nor a tool is refused in one line with the nearest name") {
  const Path path;
  path.add("ddprun-hello", "echo hello");
  const auto check = [&](const std::string& name, const std::string& nearest) {
    const auto result = path.ddprun({name, "--help"});
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK(result.err ==
          "ddprun: unknown argument \"" + name + "\" (did you mean \"" + nearest + "\"?); see ddprun --help\n");
  };
  check("benhc", "bench");
  check("helo", "hello");
  check("evaluat", "evaluate");
}
