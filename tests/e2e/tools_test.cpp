// Subcommands that are separate programs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>

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

TEST_CASE("help lists the commands, ddprun's tools with what they do, and other tools by name, without starting them") {
  const Path path;
  path.add("ddprun-hello", "sleep 600");
  const auto result = path.ddprun({"--help"});
  CHECK(result.code == 0);
  CHECK(contains(line_of(result.out, "validate"), "Check experiments"));
  CHECK(contains(line_of(result.out, "bench"), "Measure collectives"));
  CHECK(contains(result.out, "\n  hello\n"));
}

// The descriptions in a help text: what begins in the column that CLI11 uses for them.
std::vector<std::string> descriptions(const std::string& help) {
  constexpr std::size_t column = 30;
  std::vector<std::string> found;
  for (const std::string& line : lines_of(help)) {
    const bool described = line.size() > column && line.starts_with("  ") &&
                           !std::isdigit(static_cast<unsigned char>(line[2])) && line.substr(column - 2, 2) == "  " &&
                           line[column] != ' ' && line.find("ddprun ") == std::string::npos;
    if (described) found.push_back(line.substr(column));
  }
  return found;
}

TEST_CASE("the help of every program describes each option in a sentence") {
  const Workplace place;
  const std::vector<std::vector<std::string>> programs = {{},
                                                          {"validate"},
                                                          {"evaluate"},
                                                          {"launch"},
                                                          {"plugins"},
                                                          {"bench"},
                                                          {"doctor"},
                                                          {"compare"},
                                                          {"predict"},
                                                          {"tune"},
                                                          {"report"},
                                                          {"new"},
                                                          {"data"},
                                                          {"data", "fetch"},
                                                          {"data", "info"},
                                                          {"conformance"},
                                                          {"conformance", "--dataset", "linear"},
                                                          {"conformance", "--model", "linear"}};
  for (std::vector<std::string> arguments : programs) {
    arguments.push_back("--help");
    const auto result = place.ddprun(arguments);
    REQUIRE_MESSAGE(result.code == 0, result.err);
    const auto sentences = descriptions(result.out);
    CHECK(sentences.size() > 1);
    for (const std::string& sentence : sentences) {
      CHECK_MESSAGE(std::isupper(static_cast<unsigned char>(sentence.front())), sentence);
      CHECK_MESSAGE(sentence.back() == '.', sentence);
    }
  }
}

TEST_CASE("new of a build folder says how to install ddprun, and the project uses the installed one") {
  const Workplace place;
  const auto folder = place.folder() / "mine";
  const auto result = place.ddprun({"new", "comm", "mine", "--folder", folder.string()});
  CHECK_MESSAGE(result.code == 0, result.err);
  const std::string build = fs::path(program()).parent_path().parent_path();
  for (const std::string& line :
       {"cmake --build " + build + " --target product\n", "cmake --install " + build + " --prefix $HOME/.local\n",
        std::string("cmake --preset release -DCMAKE_PREFIX_PATH=$HOME/.local\n")}) {
    CHECK_MESSAGE(contains(result.out, line), result.out);
  }
  CHECK(contains(read_file(folder / "README.md"), "CMAKE_PREFIX_PATH=$HOME/.local\n"));
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

TEST_CASE("a file that does not exist is reported as one, and a command that ddprun does not need as that") {
  const Workplace place;
  CHECK(place.ddprun({"exp.tml"}).err == "exp.tml: cannot be read (No such file or directory); give a TOML file\n");
  CHECK(place.ddprun({"train", "exp.toml"}).err == "ddprun: unknown argument \"train\"; see ddprun --help\n");
  CHECK(contains(place.ddprun({"exp.toml", "--nprocs", "2"}).err, "did you mean \"--nproc\"?"));
  CHECK(contains(place.ddprun({"exp.toml", "--nproc", "two"}).err, "--nproc: Value two not in range 1 to "));
}
