// `ddprun data info`: its report on a data set, how it shows a sample, and what it refuses.
#include <doctest/doctest.h>

#include "data/idx_files.hpp"
#include "e2e/program.hpp"
#include "support/golden.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

// `ddprun data info ARGUMENTS`, which must succeed and print nothing on stderr.
std::string info(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"data", "info"});
  const auto result = Workplace().ddprun(arguments);
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  return result.out;
}

// `ddprun data info ARGUMENTS`, which must end with `code` and only a line that contains `expected`.
void check_refused(std::vector<std::string> arguments, int code, const std::string& expected) {
  arguments.insert(arguments.begin(), {"data", "info"});
  const auto result = Workplace().ddprun(arguments);
  CHECK(result.code == code);
  CHECK(result.out.empty());
  CHECK_MESSAGE(contains(result.err, expected), result.err);
  CHECK(lines_of(result.err).size() == 1);
}

// The text from `begin` to the end.
std::string from(const std::string& text, const std::string& begin) {
  const std::size_t at = text.find(begin);
  return at == std::string::npos ? "no such text in:\n" + text : text.substr(at);
}

TEST_CASE("a data set of images: origin, splits, values, classes, and its first samples") {
  const IdxFolder files;
  check_golden("e2e/data_info.txt", info({"mnist", "--root", files.root()}));
}

TEST_CASE("--sample, --split and --option select what is shown") {
  const IdxFolder files;
  const auto sample4 = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"mnist", "--root", files.root(), "--sample", "4"});
    return lines_of(from(info(more), "samples of train:")).at(2);
  };
  const std::string plain = sample4({}), scaled = sample4({"--option", "mean=0.05", "--option", "std=0.01"});
  CHECK_MESSAGE((plain.starts_with("     4  ") && plain.ends_with("class 4")), plain);
  CHECK(scaled.ends_with("class 4"));
  CHECK(scaled != plain);
  CHECK(contains(info({"mnist", "--root", files.root(), "--split", "test", "--sample", "1"}), "samples of test:"));
}

TEST_CASE("regression: the targets' range, and values instead of an image") {
  const std::vector<std::string> line = {"linear",  "--option", "samples=7",     "--option",
                                         "noise=0", "--option", "test_samples=3"};
  const std::string text = info(line);
  CHECK_MESSAGE(contains(text, "train        7  float32 1  float32 1\n"), text);
  CHECK_MESSAGE(contains(text, "\ntarget of  samples "), text);
  const auto lines = lines_of(from(text, "samples of train:"));
  REQUIRE(lines.size() == 2 + 5);
  CHECK(lines[2].starts_with("     0  "));
  CHECK(lines[6].starts_with("     4  "));
  auto others = line;
  others.insert(others.end(), {"--seed", "7"});
  CHECK(info(others) != text);
  others.back() = "42";
  CHECK(info(others) == text);
  others.insert(others.end(), {"--sample", "5"});
  CHECK(lines_of(from(info(others), "samples of train:")).size() == 2 + 2);
}

TEST_CASE("--config uses data and seed of an experiment, its errors have their place, and no plugin is needed") {
  const IdxFolder files;
  Workplace place;
  const std::string config = place.config(
      "[model]\nname = \"nobody-has-it\"\n[comm]\nbackend = \"nor-this\"\n[strategy]\nkind = \"ddp\"\n"
      "[data]\nname = \"mnist\"\nroot = \"" +
      files.root() + "\"\n");
  CHECK(info({"--config", config}) == info({"mnist", "--root", files.root()}));
  CHECK(info({"--config", config, "--set", "data.options.std=0.5"}) ==
        info({"mnist", "--root", files.root(), "--option", "std=0.5"}));
  check_refused({"--config", config, "--set", "data.root=/nowhere"}, 2, "--set data.root=/nowhere: data.root = ");
  check_refused({"--config", config, "--set", "data.name=mnits"}, 2, "(did you mean \"mnist\"?)");
  check_refused({"--config", place.config("[data]\nname = \"linear\"\nseed = 3\n[model]\nname=\"linear\"\n", "bad")}, 2,
                "bad.toml:3:1: data.seed: unknown key");
}

TEST_CASE("an unknown name, root, option, sample or split is refused with its place") {
  const IdxFolder files;
  check_refused({"mnits"}, 2, "data set \"mnits\": expected \"linear\", ");
  check_refused({"mnits"}, 2, "(did you mean \"mnist\"?)");
  check_refused({"/nowhere/libx.so"}, 3, "/nowhere/libx.so");
  check_refused({"mnist", "--root", "/nowhere"}, 2, "--root /nowhere: /nowhere: no such folder; \"ddprun data fetch");
  check_refused({"idx"}, 2, "data set \"idx\": expected the folder");
  check_refused({"linear", "--option", "samples=ten"}, 2, "--option samples=ten: expected an integer from 1");
  check_refused({"linear", "--option", "sampels=9"}, 2, "(did you mean \"samples\"?)");
  check_refused({"linear", "--option", "samples"}, 2, "--option samples: expected KEY=VALUE");
  check_refused({"linear", "--option", "=5"}, 2, "--option =5: expected KEY=VALUE");
  const auto with = [&](const std::string& option, const std::string& value) {
    return std::vector<std::string>{"mnist", "--root", files.root(), option, value};
  };
  check_refused(with("--sample", "5"), 2, "--sample 5: train has 5 samples, numbered from 0");
  check_refused(with("--sample", "-1"), 2, "--sample -1: train has 5 samples, numbered from 0");
  check_refused(with("--sample", "one"), 2, "--sample");
  check_refused(with("--split", "tset"), 2, "--split");
  check_refused(with("--epoch", "-1"), 2, "--epoch");
}

TEST_CASE("an option takes one value: the name may follow it, and a second value is refused") {
  const std::string text = info({"linear", "--option", "samples=30", "--option", "noise=0"});
  CHECK_MESSAGE(contains(text, "train       30  "), text);
  CHECK(info({"--option", "samples=30", "--option", "noise=0", "linear"}) == text);
  CHECK(info({"--option", "samples=30", "linear", "--option", "noise=0"}) == text);
  CHECK(info({"--option", "samples=30", "--option", "noise=0", "--plugin-path", "/usr", "linear"}) == text);
  check_refused({"linear", "--option", "samples=30", "noise=0"}, 2, "unknown argument \"noise=0\"");
  check_refused({"linear", "--plugin-path", "/usr", "/elsewhere"}, 2, "unknown argument \"/elsewhere\"");
}

TEST_CASE("neither name nor config, or both, or an option of the other, is a usage error") {
  Workplace place;
  const std::string config = place.config("[model]\nname = \"linear\"\n[data]\nname = \"linear\"\n");
  check_refused({}, 2, "expected either the name of a data set or --config FILE");
  check_refused({"linear", "--config", config}, 2, "expected either the name of a data set or --config FILE");
  check_refused({"--config", config, "--root", "/nowhere"}, 2, "--root");
  check_refused({"--config", config, "--option", "samples=5"}, 2, "--option");
  check_refused({"--config", config, "--seed", "5"}, 2, "--seed");
  check_refused({"linear", "--set", "data.root=x"}, 2, "--set");
  check_refused({"linear", "--optoin", "samples=5"}, 2, "(did you mean \"--option\"?)");
}

}  // namespace
