// ddprun data fetch.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "e2e/program.hpp"
#include "support/paths.hpp"
#include "tools/data/server.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;
namespace fs = std::filesystem;

namespace {

constexpr const char* kBiggest = "train-images-idx3-ubyte.gz";

// The folder of the real MNIST, or nothing, after printing a line.
fs::path real_mnist() {
  const char* data = std::getenv("DDPRUN_TEST_DATA");
  if (data != nullptr && fs::exists(fs::path(data) / "mnist")) return fs::path(data) / "mnist";
  MESSAGE("skipped: DDPRUN_TEST_DATA names no folder that holds mnist/");
  return {};
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// `ddprun ARGUMENTS` with the test's folder as working directory.
ProcessResult in_folder(const Workplace& place, const std::string& arguments) {
  return place.run({"/bin/sh", "-c", "cd '" + place.folder().string() + "' && exec '" + program() + "' " + arguments});
}

}  // namespace

TEST_CASE("ddprun data without arguments prints its help, and the code is that of a usage error") {
  const auto result = Workplace().ddprun({"data"});
  CHECK(result.code == 2);
  CHECK(result.out.empty());
  CHECK(contains(result.err, "Usage: ddprun data"));
  CHECK(contains(result.err, "fetch"));
}

TEST_CASE("a wrong argument is a usage error that names the nearest right one") {
  Workplace place;
  const auto check = [&](const std::vector<std::string>& arguments, const std::string& expected) {
    const auto result = place.ddprun(arguments);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK_MESSAGE(contains(result.err, expected), result.err);
  };
  check({"data", "fetsh", "mnist"}, "unknown argument \"fetsh\" (did you mean \"fetch\"?)");
  check({"data", "fetch", "cifar"}, "(did you mean \"cifar10\"?)");
  check({"data", "fetch", "mnist", "--miror", "x"}, "unknown argument \"--miror\" (did you mean \"--mirror\"?)");
  check({"data", "fetch"}, "data fetch: expected the name of a data set: \"mnist\", \"fashion-mnist\" or \"cifar10\"");
  check({"data", "fetch", "mnist", "--mirror", "ftp://host"}, "expected a URL that begins with http://");
}

TEST_CASE("a missing file: exit code 1, one line with URL, reason and remedy, and nothing left") {
  Workplace place;
  const TempDir empty;
  const Server server(empty.path());
  const std::string root = (place.folder() / "mnist").string();
  const auto result = place.ddprun({"data", "fetch", "mnist", "--root", root, "--mirror", server.base("plain")});
  CHECK(result.code == 1);
  CHECK(result.out.empty());
  CHECK(last_line(result.err) ==
        std::string("ddprun: failed: cannot download ") + kBiggest + ": " + server.base("plain") + kBiggest +
            ": curl: (22) The requested URL returned error: 404; try --mirror URL, or put the file into " + root +
            " by hand");
  CHECK(fs::is_empty(root));
}

TEST_CASE("MNIST is downloaded to the folder that the configs use; the second time it is only verified") {
  const fs::path mnist = real_mnist();
  if (mnist.empty()) return;
  Workplace place;
  const Server server(mnist);
  const std::string fetch = "data fetch mnist --mirror " + server.base("plain");
  const auto first = in_folder(place, fetch);
  CHECK(first.code == 0);
  CHECK(first.out == "mnist is in data/mnist: set data.name = \"mnist\"\n");
  CHECK(lines_of(first.err).size() == 8);  // start and end of four files, without a terminal
  CHECK(names_in(place.folder() / "data/mnist") == names_in(mnist));

  const auto second = in_folder(place, fetch);
  CHECK(second.code == 0);
  CHECK(second.out == first.out);
  for (const std::string& line : lines_of(second.err)) CHECK_MESSAGE(line.ends_with(": already verified"), line);
  CHECK(lines_of(second.err).size() == 4);
  CHECK(server.requests().size() == 4);

  const auto validated = in_folder(place, "validate " + source_dir() + "/configs/mnist_simplenet_single.toml");
  CHECK_MESSAGE(validated.code == 0, validated.err);
}

TEST_CASE("a file that was changed later is refused and not changed") {
  const fs::path mnist = real_mnist();
  if (mnist.empty()) return;
  Workplace place;
  const std::string root = (place.folder() / "mnist").string();
  const std::vector<std::string> fetch = {
      "data", "fetch", "mnist", "--root", root, "--mirror", "file://" + mnist.string()};
  REQUIRE(place.ddprun(fetch).code == 0);
  std::ofstream(fs::path(root) / kBiggest, std::ios::app) << "x";
  const auto size = fs::file_size(fs::path(root) / kBiggest);
  const auto result = place.ddprun(fetch);
  CHECK(result.code == 2);
  CHECK(result.out.empty());
  CHECK_MESSAGE(contains(last_line(result.err), "is there, but it is not the published file"), result.err);
  CHECK(fs::file_size(fs::path(root) / kBiggest) == size);
}

TEST_CASE("after a kill or an interrupt, the next call fetches only the rest") {
  const fs::path mnist = real_mnist();
  if (mnist.empty()) return;
  constexpr std::uintmax_t half = 5'000'000;
  for (const auto& [signal, code] : {std::pair{SIGKILL, 128 + SIGKILL}, {SIGINT, 130}, {SIGTERM, 143}}) {
    CAPTURE(signal);
    Workplace place;
    const Server server(mnist);
    const std::string root = (place.folder() / "mnist").string();
    const fs::path part = fs::path(root) / (std::string(kBiggest) + ".part");
    Process process({program(), "data", "fetch", "mnist", "--root", root, "--mirror", server.base("stall-5000000")},
                    place.environment());
    REQUIRE(eventually([&] {
      std::error_code absent;
      return fs::file_size(part, absent) == half && !absent;
    }));
    process.send(signal);
    const auto result = process.wait();
    CHECK(result.code == code);
    CHECK(result.out.empty());
    if (signal != SIGKILL) CHECK(contains(last_line(result.err), "the same command resumes from there"));

    const auto next = place.ddprun({"data", "fetch", "mnist", "--root", root, "--mirror", server.base("plain")});
    CHECK(next.code == 0);
    CHECK(server.requests().at(1) == std::string("/plain/") + kBiggest + " bytes=5000000- 206 4912422");
    CHECK(names_in(root) == names_in(mnist));
    CHECK(place.leftovers().empty());
  }
}

TEST_CASE("on a terminal curl shows a bar") {
  const fs::path mnist = real_mnist();
  if (mnist.empty()) return;
  Workplace place;
  const std::string root = (place.folder() / "mnist").string();
  // DDPRUN_TTY has the columns of the terminal that shows our stderr.
  Process process({program(), "data", "fetch", "mnist", "--root", root, "--mirror", "file://" + mnist.string()},
                  {"DDPRUN_TTY=120", "TERM=xterm"});
  const auto result = process.wait();
  CHECK(result.code == 0);
  CHECK(contains(result.err, " 100.0%"));
  CHECK(contains(result.err, "train-images-idx3-ubyte.gz: downloaded"));
}
