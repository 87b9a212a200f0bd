// ddprun evaluate: a checkpoint gives the results that its run reported.
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "data/idx_files.hpp"
#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

const std::string kSimplenet = R"(
[launch]
threads = 1
[model]
name = "simplenet"
options = { hidden = 16 }
[data]
name = "synthetic"
batch_size = 24
standardize = true
options = { shape = "1x8x8", classes = 4, samples = 240, test_samples = 50 }
[optimizer]
name = "adam"
lr = 0.01
[train]
epochs = 2
)";

// "%.4f" and "%.2f %%", as the tables format losses and accuracies.
std::string row(const char* name, const char* form, double value) {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return std::string(name) + "  " + text;
}

// The lines, with runs of spaces reduced to two.
std::string squeezed(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ' && out.size() > 1 && out.ends_with("  ")) continue;
    out += c;
  }
  return out;
}

TEST_CASE("a checkpoint gives the loss and the accuracy of its run, on one rank and on two") {
  Workplace place;
  const auto trained = place.run(place.training(place.config(kSimplenet)));
  INFO(trained.err);
  REQUIRE(trained.code == 0);
  const auto run = place.new_run();
  const auto summary = summary_of(run);
  const std::string file = commits_of(run).back().path;
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"evaluate", "--checkpoint", run.string()},
        std::vector<std::string>{"evaluate", "--checkpoint", file},
        std::vector<std::string>{"evaluate", "--checkpoint", run.string(), "--set", "strategy.kind=ddp", "--set",
                                 "launch.nproc=2"}}) {
    const auto result = place.ddprun(arguments);
    INFO(result.err);
    INFO(result.out);
    REQUIRE(result.code == 0);
    const std::string table = squeezed(result.out);
    CHECK(contains(table, "checkpoint " + file + "\n50 test samples\n"));
    CHECK(contains(table, row("test loss", "%.4f", summary.at("test.loss"))));
    CHECK(contains(table, row("test accuracy", "%.2f %%", 100 * summary.at("test.accuracy").get<double>())));
  }
  CHECK(place.leftovers().empty());
  // The first epoch's commit has other weights.
  const auto first = place.ddprun({"evaluate", "--checkpoint", commits_of(run).front().path});
  CHECK(first.code == 0);
  CHECK_FALSE(contains(squeezed(first.out), row("test loss", "%.4f", summary.at("test.loss"))));
}

TEST_CASE("the checkpoint of a run with a validation set gives the run's results on the test set") {
  Workplace place;
  REQUIRE(place.run(place.training(place.config(kSimplenet), {"data.validation=0.2"})).code == 0);
  const auto run = place.new_run();
  const auto result = place.ddprun({"evaluate", "--checkpoint", run.string()});
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK(contains(result.out, "\n50 test samples\n"));
  CHECK(contains(squeezed(result.out), row("test loss", "%.4f", summary_of(run).at("test.loss"))));
}

TEST_CASE("a run on a data set's default folder can be evaluated from any folder") {
  Workplace place;
  const auto root = place.folder() / "data/mnist";
  std::filesystem::create_directories(root);
  const auto write = [&](const char* name, const std::string& bytes) {
    std::ofstream(root / name, std::ios::binary) << bytes;
  };
  write(train_images, idx({8, 4, 4}, ramp(128)));
  write(train_labels, idx({8}, ramp(8)));
  write(test_images, idx({4, 4, 4}, ramp(64)));
  write(test_labels, idx({4}, ramp(4)));
  const auto in = [&](const std::string& folder, const Argv& argv) {
    const auto result = place.run(Argv{"/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", folder} + argv);
    CHECK_MESSAGE(result.code == 0, result.err);
    return result;
  };
  const std::string config = place.config(
      "[model]\nname = \"simplenet\"\n[data]\nname = \"mnist\"\nbatch_size = 4\n[train]\nevaluate = false\n");
  const auto training = place.training(config);
  in(place.folder().string(), training);
  const auto run = place.new_run();
  CHECK(contains(in("/", {training.front(), "evaluate", "--checkpoint", run.string()}).out, "4 test samples"));
  in("/", place.training((run / "config.toml").string()));
}

TEST_CASE("standardisation is the checkpoint's, not the test set's, and a checkpoint without it is refused") {
  Workplace place;
  REQUIRE(place.run(place.training(place.config(kSimplenet), {"data.standardize=false"})).code == 0);
  const auto run = place.new_run();
  const auto refused = place.ddprun({"evaluate", "--checkpoint", run.string(), "--set", "data.standardize=true"});
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, commits_of(run).back().path + ": holds no standardization"));
}

TEST_CASE("a checkpoint that cannot be evaluated is refused in one line") {
  Workplace place;
  REQUIRE(place.run(place.training(place.config(kSimplenet))).code == 0);
  const auto run = place.new_run();
  const auto refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "evaluate");
    const auto result = place.ddprun(arguments);
    CHECK(result.code == 2);
    CHECK(lines_of(result.err).size() == 1);
    return result.err;
  };
  CHECK(contains(refused({"--checkpoint", "none"}), "none: no such file or folder; give a run folder"));
  const std::string loop = place.folder() / "loop";
  std::filesystem::create_symlink("loop", loop);
  const auto unread = place.ddprun({"evaluate", "--checkpoint", loop});
  CHECK(unread.code == 1);
  CHECK(contains(unread.err, "cannot read " + loop + ": Too many levels of symbolic links"));
  CHECK(contains(refused({"--checkpoint", place.folder().string()}), ": holds no checkpoint"));
  const auto lone = place.folder() / "lone.safetensors";
  std::filesystem::copy_file(commits_of(run).back().path, lone);
  CHECK(contains(refused({"--checkpoint", lone.string()}), "no config.toml of a run belongs to it; give --config"));
  CHECK(contains(refused({"--checkpoint", run.string(), "--set", "model.options.hidden=8"}),
                 "these are not the weights of this model"));
  CHECK(contains(refused({}), "--checkpoint is required; see ddprun evaluate --help"));
}

}  // namespace
