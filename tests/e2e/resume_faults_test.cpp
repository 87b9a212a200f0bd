// A run that cannot be resumed is refused in one clear line, before any training; allowed changes are reported.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "base/file.hpp"
#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;
namespace fs = std::filesystem;

namespace {

// 10 steps per epoch.
const std::string kLinear = R"(
[strategy]
kind = "ddp"
[launch]
threads = 1
nproc = 2
[model]
name = "linear"
[data]
name = "linear"
batch_size = 24
options = { samples = 240, test_samples = 48 }
[optimizer]
lr = 0.05
momentum = 0.9
)";

struct Broken {
  Workplace place;
  std::string config = place.config(kLinear);
  fs::path run = train({"train.steps=14"});  // commits only there, in the middle of the second epoch

  fs::path train(const std::vector<std::string>& settings) {
    const auto result = place.run(place.training(config, settings));
    INFO(result.err);
    REQUIRE(result.code == 0);
    return place.new_run();
  }
  std::string file(const fs::path& of, const std::string& ending = ".safetensors") const {
    const std::string path = commits_of(of).back().path;
    return path.substr(0, path.find(".safetensors")) + ending;
  }
  ProcessResult go_on(const std::string& from, std::vector<std::string> settings = {"train.epochs=2"}) {
    settings.push_back("checkpoint.resume=" + from);
    return place.run(place.training(config, settings));
  }
  // The one line of the refusal, which exits with 2 and leaves no run folder.
  std::string refused(const std::string& from, const std::vector<std::string>& settings = {"train.epochs=2"}) {
    const auto runs = std::distance(fs::directory_iterator(place.runs()), {});
    const auto result = go_on(from, settings);
    INFO(result.err);
    CHECK(result.code == 2);
    CHECK(std::distance(fs::directory_iterator(place.runs()), {}) == runs);
    return result.err;
  }
};

TEST_CASE("each changed key that makes a different run is named with both values, all together") {
  Broken broken;
  const std::string file = broken.file(broken.run);
  const std::string message =
      broken.refused(broken.run.string(), {"train.epochs=2", "experiment.seed=7", "optimizer.name=adam"});
  CHECK(contains(message,
                 "--set experiment.seed=7: experiment.seed = 7: the run of " + file + " has 42, and with another"));
  CHECK(contains(message, "optimizer.name = \"adam\": the run of " + file + " has \"sgd\", and with another"));
  const auto lines = lines_of(message);
  CHECK(std::count_if(lines.begin(), lines.end(), [](auto& line) { return contains(line, "the run of"); }) == 2);
  CHECK(contains(broken.refused(broken.run.string(), {"train.epochs=2", "data.batch_size=48"}),
                 "makes a global batch of 48, and the run of " + file + " has 24"));
  CHECK(contains(broken.refused(broken.run.string(), {"train.epochs=2", "data.options.samples=480"}),
                 "has 480 training samples here, and 240 in the run of " + file));
}

TEST_CASE("other changed settings are reported in one line, and used") {
  Broken broken;
  const auto result = broken.go_on(broken.run.string(), {"train.epochs=2", "optimizer.lr=0.01"});
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(contains(result.err, "resuming from " + broken.file(broken.run) +
                                 ": step 14, in the middle of epoch 2; with optimizer.lr = 0.01 (was 0.05), "
                                 "train.epochs = 2 (was not given), train.steps = not given (was 14)"));
  CHECK(steps_of(broken.place.new_run(), 0).front().at("lr") == 0.01);
}

TEST_CASE("resuming in the middle of an epoch needs the same number of ranks, at an epoch's end it does not") {
  Broken broken;
  const std::string message = broken.refused(broken.run.string(), {"train.epochs=2", "launch.nproc=3"});
  CHECK(contains(message, "launch.nproc = 3: " + broken.file(broken.run) +
                              " lies in the middle of an epoch, which only 2 ranks can finish; use as many"));
  const fs::path whole = broken.train({"train.epochs=1", "checkpoint.best=test.loss"});
  for (const char* ranks : {"3", "1"}) {
    CAPTURE(ranks);
    const auto result = broken.go_on(
        whole.string(), {"train.epochs=2", std::string("launch.nproc=") + ranks, "checkpoint.best=test.loss"});
    INFO(result.err);
    REQUIRE(result.code == 0);
    CHECK(contains(result.err, std::string("; on ") + ranks + (ranks[0] == '1' ? " rank" : " ranks") +
                                   " (were 2): not bit for bit what those would compute"));
    const fs::path run = broken.place.new_run();
    CHECK(steps_of(run, 0).front().at("step") == 11);
    CHECK(summary_of(run).at("epochs") == 2);
    const auto before = json_lines(whole / "epochs.jsonl").at(0), again = json_lines(run / "epochs.jsonl").at(0);
    CHECK(again.at("test.loss").get<double>() == doctest::Approx(before.at("test.loss").get<double>()).epsilon(1e-6));
    CHECK(again.at("train.loss").get<double>() == doctest::Approx(before.at("train.loss").get<double>()).epsilon(1e-6));
  }
}

TEST_CASE("if nothing is left to train, that is reported") {
  Broken broken;
  CHECK(
      contains(broken.refused(broken.run.string(), {"train.steps=14"}),
               "train.steps = 14: nothing is left to train: " + broken.file(broken.run) + " has 14 steps; give more"));
  CHECK(contains(broken.refused(broken.run.string(), {"train.epochs=1"}), "has 1 epoch; give more"));
}

TEST_CASE("a missing or damaged commit is reported with its file") {
  Broken broken;
  const std::string weights = broken.file(broken.run), state = broken.file(broken.run, ".state-rank1.safetensors");
  CHECK(contains(broken.refused("none"), "checkpoint.resume = \"none\": no such file or folder; give a checkpoint"));
  CHECK(contains(broken.refused(broken.place.folder().string()),
                 broken.place.folder().string() + ": holds no checkpoint"));
  CHECK(contains(broken.refused("latest", {"train.epochs=2", "experiment.name=other"}),
                 "no run of \"other\" with a checkpoint lies in " + broken.place.runs().string()));

  const auto with_damage = [&](const std::string& path, auto damage) {
    const std::string kept = read_file(path);
    damage(path);
    const std::string message = broken.refused(weights);  // the run folder would give the checkpoint before it
    std::ofstream(path, std::ios::binary) << kept;
    return message;
  };
  const auto flip = [](const std::string& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x55');
  };
  const auto cut = [](const std::string& path) { fs::resize_file(path, fs::file_size(path) - 1); };
  for (const std::string& path : {weights, state, broken.file(broken.run, ".state-rank0.safetensors")}) {
    CAPTURE(path);
    CHECK(contains(with_damage(path, flip), path + ": "));
    CHECK(contains(with_damage(path, cut), path + ": "));
  }
  CHECK(
      contains(with_damage(state, [](const std::string& path) { fs::remove(path); }), state + ": no such checkpoint"));
  CHECK(contains(with_damage(broken.file(broken.run, ".state-rank0.safetensors"),
                             [](const std::string& path) { fs::remove(path); }),
                 weights + ": weights without the state of a run; model.weights starts a new run from them"));

  // A state file of another run, complete.
  const fs::path other = broken.train({"train.steps=14"});
  fs::copy_file(broken.file(other, ".state-rank1.safetensors"), state, fs::copy_options::overwrite_existing);
  CHECK(contains(broken.refused(weights), state + ": not of the same run as " + weights));
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  return {fs::directory_iterator(folder), {}};
}

TEST_CASE(
    "if the newest checkpoint is damaged, a run folder gives the one before it, with a warning; its name does not") {
  Broken broken;
  const fs::path run = broken.train({"train.steps=14", "checkpoint.every_steps=7", "checkpoint.every_epochs=0"});
  const auto commits = commits_of(run);
  REQUIRE(commits.size() == 2);
  const std::string newest = commits.back().path, state = broken.file(run, ".state-rank1.safetensors");
  fs::resize_file(state, fs::file_size(state) - 1);
  for (const std::string& from : {run.string(), std::string("latest")}) {
    CAPTURE(from);
    const auto result = broken.go_on(from);
    INFO(result.err);
    CHECK(result.code == 0);
    CHECK(contains(result.err, "warning: " + state + ": "));
    CHECK(contains(result.err, "; using an older checkpoint instead: " + commits.front().path));
    CHECK(contains(result.err, "resuming from " + commits.front().path + ": step 7"));
    // Not new_run(): the second run may begin in the same second, and then has the name of the first.
    for (const fs::path& folder : folders_in(broken.place.runs())) {
      if (folder != run && folder != broken.run) fs::remove_all(folder);
    }
  }
  CHECK(contains(broken.refused(newest), state + ": "));
  const auto evaluated = broken.place.ddprun({"evaluate", "--checkpoint", run.string()});
  CHECK_MESSAGE(evaluated.code == 0, evaluated.err);
  CHECK(contains(evaluated.err, "; using an older checkpoint instead: " + commits.front().path));
}

TEST_CASE("temporary files of a killed writer in a run's folder are removed by the run that resumes from it") {
  Broken broken;
  const std::string left = ddprun::aside_path(broken.file(broken.run), 999999999);
  std::ofstream(left) << "half";
  CHECK(broken.go_on(broken.run.string()).code == 0);
  CHECK_FALSE(fs::exists(left));
}

}  // namespace
