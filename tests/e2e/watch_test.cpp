// A run that one watches: in a terminal, from other programs while it goes on, and after it was killed.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <optional>
#include <thread>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "support/pty.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

const std::string kImages = R"(
[launch]
threads = 1
[strategy]
kind = "single"
[model]
name = "simplenet"
options = { hidden = 32 }
[data]
name = "synthetic"
batch_size = 24
options = { shape = "1x28x28", classes = 10, samples = 480, test_samples = 48 }
[train]
epochs = 10000
[log]
every = 5
)";

// The steps from this one on take so long.
std::vector<std::string> slow_from(int step, const std::string& seconds) {
  return {"faults.kind=slow", "faults.step=" + std::to_string(step), "faults.seconds=" + seconds};
}

std::vector<std::string> on_terminal(const Workplace& place) {
  auto variables = place.environment();
  variables.insert(variables.begin(), "TERM=xterm");
  return variables;
}

// Whether a line of the screen has a part of the progress bar.
bool has_remnants(const std::vector<std::string>& screen) {
  return std::any_of(screen.begin(), screen.end(), [](const std::string& line) {
    return contains(line, "[=") || contains(line, "[>") || contains(line, "  ]") || contains(line, "samples/s  ");
  });
}

bool has_line_with(const std::vector<std::string>& screen, const std::string& text) {
  return std::any_of(screen.begin(), screen.end(), [&](const std::string& line) { return line.starts_with(text); });
}

// {tag: [[step, value], ...]} of the event file in a run folder; nothing, and a line, without TensorBoard's reader.
std::optional<nlohmann::json> events_in(const Workplace& place, const std::string& run) {
  const auto read = place.run({DDPRUN_PYTHON, READ_EVENTS, run});
  if (read.code == 77) {
    std::cout << read.out;
    return std::nullopt;
  }
  REQUIRE_MESSAGE(read.code == 0, read.err);
  return nlohmann::json::parse(last_line(read.out));
}

TEST_CASE("Ctrl-C in one process is answered before the step ends, and leaves nothing of the bar") {
  Workplace place;
  InTerminal run(80, place.training(place.config(kImages), slow_from(7, "6")), on_terminal(place));
  run.wait_for("  6/20  loss ");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // step 7 has begun
  run.type("\x03");
  run.wait_for("ddprun: stopping after this step, with a checkpoint (a second signal ends the run at once)");
  CHECK_FALSE(contains(run.output(), "stopping after step"));
  CHECK(run.wait() == 130);
  CHECK(has_line_with(run.screen(), "ddprun: stopping after step "));
  CHECK(has_line_with(run.screen(), "to resume: repeat the command with "));
  CHECK(has_line_with(run.screen(), "run folder: "));
  for (const std::string& line : run.screen()) INFO(line);
  CHECK_FALSE(has_remnants(run.screen()));
  CHECK(commits_of(place.new_run()).size() == 1);
}

TEST_CASE("a second Ctrl-C ends the run at once, and leaves nothing of the bar") {
  Workplace place;
  InTerminal run(80, place.training(place.config(kImages), slow_from(7, "3600")), on_terminal(place));
  run.wait_for("  6/20  loss ");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // step 7 has begun
  run.type("\x03");
  run.wait_for("ddprun: stopping after this step");
  run.type("\x03");
  CHECK(run.wait() == 130);
  CHECK_FALSE(has_remnants(run.screen()));
}

TEST_CASE("while a run goes on, report reads it, and after it was killed report reads what is left") {
  Workplace place;
  auto settings = slow_from(48, "3600");
  settings.emplace_back("log.tensorboard=true");
  Process training(place.training(place.config(kImages), settings), place.environment());
  REQUIRE(eventually([&] { return contains(training.err(), "epoch 3 [5/20] "); }));
  const std::string run = place.new_run();
  const auto watch = [&](const std::string& state) {
    const auto report = place.ddprun({"report", run});
    REQUIRE_MESSAGE(report.code == 0, report.err);
    CHECK_MESSAGE(contains(report.err, state), report.err);
    CHECK(contains(read_file(run + "/report.html"), state));
    const auto exported = place.ddprun({"report", run, "--csv", run + "/steps.csv"});
    REQUIRE_MESSAGE(exported.code == 0, exported.err);
    CHECK_MESSAGE(contains(exported.err, run + ": " + state), exported.err);
    CHECK(lines_of(read_file(run + "/steps.csv")).size() == 1 + steps_of(run, 0).size());
  };
  CHECK(steps_of(run, 0).size() >= 40);
  const std::string last = std::to_string(steps_of(run, 0).size());
  watch("the run is under way or ended without a summary: its figures go to step " + last);
  training.send(SIGKILL);
  training.wait();
  watch("the run is under way or ended without a summary: its figures go to step " + last);

  const std::vector<nlohmann::json> steps = steps_of(run, 0);
  const auto step = steps.at(6);
  CHECK(step.at("accuracy").get<double>() == step.at("correct").get<double>() / 24);
  CHECK(step.at("throughput").get<double>() == doctest::Approx(24 / step.at("total").get<double>()));

  const auto events = events_in(place, run);
  if (!events) return;
  for (const char* figure : {"loss", "accuracy", "throughput", "lr"}) {
    const auto& points = events->at(std::string("train/") + figure);
    REQUIRE(points.size() == 9);  // also those of the steps that the kill kept from steps-rank0.jsonl
    CHECK(points.at(8).at(0) == 45);
    for (std::size_t i = 0; i < 8; ++i) {
      CHECK(points[i][0] == 5 * (i + 1));
      CHECK(points[i][1].get<double>() == doctest::Approx(steps.at(5 * i + 4).at(figure).get<double>()).epsilon(1e-6));
    }
  }
  const auto epochs = json_lines(std::filesystem::path(run) / "epochs.jsonl");
  REQUIRE(epochs.size() == 2);
  for (const char* figure : {"loss", "accuracy"}) {
    const auto& points = events->at(std::string("epoch/test_") + figure);
    REQUIRE(points.size() == 2);
    CHECK(points[1][0] == 40);
    CHECK(points[1][1].get<double>() ==
          doctest::Approx(epochs[1].at(std::string("test.") + figure).get<double>()).epsilon(1e-6));
  }
}

TEST_CASE("with several ranks, the figures of a step are those of rank 0, and their names say so") {
  Workplace place;
  const auto result =
      place.run(place.training(place.config(kImages), {"strategy.kind=ddp", "launch.nproc=2", "train.epochs=1",
                                                       "log.every=20", "log.tensorboard=true"}));
  REQUIRE_MESSAGE(result.code == 0, result.err);
  const std::string run = place.new_run();
  const auto events = events_in(place, run);
  if (!events) return;
  std::vector<std::string> tags;
  for (const auto& [tag, points] : events->items()) tags.push_back(tag);
  CHECK(tags == std::vector<std::string>{"epoch/test_accuracy", "epoch/test_loss", "epoch/train_accuracy",
                                         "epoch/train_loss", "train/accuracy_rank0", "train/loss_rank0", "train/lr",
                                         "train/throughput_rank0"});
  CHECK(events->at("train/loss_rank0").at(0).at(1).get<double>() ==
        doctest::Approx(steps_of(run, 0).at(19).at("loss").get<double>()).epsilon(1e-6));
}

}  // namespace
