// A run's output and the files in its folder, and that the folder's config repeats the run.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <regex>
#include <thread>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

const std::string kImages = R"(
[launch]
nproc = 2
threads = 1
[comm]
algorithm = "ring"
[strategy]
kind = "ddp"
[model]
name = "simplenet"
options = { hidden = 32 }
[data]
name = "synthetic"
batch_size = 24
options = { shape = "1x28x28", classes = 10, samples = 480, test_samples = 48 }
[optimizer]
name = "adam"
[train]
epochs = 4
[log]
every = 5
)";

struct Finished {
  ProcessResult printed;
  std::filesystem::path run;
};

Finished finish(Workplace& place, const std::string& config, const std::vector<std::string>& overrides = {}) {
  const auto printed = place.run(place.training(config, overrides));
  INFO(printed.err);
  REQUIRE(printed.code == 0);
  return {printed, place.new_run()};
}

bool has_line(const std::string& text, const std::string& pattern) {
  const auto lines = lines_of(text);
  const std::regex expected(pattern);
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return std::regex_match(line, expected); });
}

TEST_CASE("stderr has banner, steps and epochs; stdout only the summary; neither has colours or carriage returns") {
  Workplace place;
  const auto [printed, run] = finish(place, place.config(kImages), {"optimizer.scale_lr=world"});
  for (const char* pattern :
       {"experiment +exp, seed 42", "model +simplenet, 25,450 parameters", "data +synthetic, 480 training.* 48 test.*",
        "strategy +ddp over gloo, algorithm ring", "optimizer +adam, lr = 0\\.02 \\(0\\.01 x 2 ranks\\)",
        "world size +2", "step lines +means since the line before .*, of rank 0",
        "ddprun: checkpoint: .*/step-00000080\\.safetensors", "batch +24 in all, 12 per rank",
        "device +cpu, 1 thread per rank", "length +4 epochs of 20 steps", "run folder +.*/runs/exp-\\d+-\\d+",
        "epoch 1 \\[5/20\\] rank 0: time .* loss \\d+\\.\\d+ .*acc \\d+\\.\\d+ .*", "epoch 4 \\[20/20\\] .*",
        "epoch 4 done in .*: train loss .*; test loss .*acc .*; train loss by rank \\S+ \\S+"}) {
    CAPTURE(pattern);
    CHECK_MESSAGE(has_line(printed.err, pattern), printed.err);
  }
  for (const char* pattern : {"test accuracy +\\S+ %", "test loss +\\S+", "train loss +\\S+", "total time +\\S+ \\w+",
                              "throughput +\\S+ samples/s", "average step +\\S+ \\w+ +100.0 %", "  data wait .*",
                              "average compute .*", "world size +2", "communication +gloo ring \\(tcp\\)"}) {
    CAPTURE(pattern);
    CHECK_MESSAGE(has_line(printed.out, pattern), printed.out);
  }
  CHECK(last_line(printed.out) == "run folder: " + run.string());
  CHECK_FALSE(contains(printed.out, "epoch 1"));
  for (const std::string& text : {printed.out, printed.err}) {
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find('\r') == std::string::npos);
  }
}

TEST_CASE("a step line has the mean loss since the line before, and that of the epoch so far") {
  Workplace place;
  const auto [printed, run] = finish(place, place.config(kImages), {"train.epochs=1", "log.every=8"});
  const auto records = steps_of(run, 0);
  const auto mean = [&](std::size_t from, std::size_t end) {
    double sum = 0;
    for (std::size_t step = from; step < end; ++step) sum += records.at(step).at("loss").get<double>();
    return sum / static_cast<double>(end - from);
  };
  std::size_t from = 0;
  for (const std::size_t end : {8, 16, 20}) {
    std::smatch found;
    const std::regex line("epoch 1 \\[" + std::to_string(end) + "/20\\] .* loss (\\S+) \\((\\S+)\\)");
    REQUIRE_MESSAGE(std::regex_search(printed.err, found, line), printed.err);
    CHECK(std::stod(found[1]) == doctest::Approx(mean(from, end)).epsilon(1e-3));
    CHECK(std::stod(found[2]) == doctest::Approx(mean(0, end)).epsilon(1e-3));
    from = end;
  }
}

TEST_CASE("the banner names what differs from the defaults, and checkpoints at every step are named by --verbose") {
  Workplace place;
  const std::vector<std::string> settings = {
      "strategy.kind=single", "train.epochs=1",         "optimizer.name=sgd",
      "optimizer.lr=0.1",     "optimizer.momentum=0.9", "train.accumulate=2",
      "train.amp=bf16",       "data.standardize=true",  "checkpoint.every_steps=1"};
  const auto [printed, run] = finish(place, place.config(kImages), settings);
  for (const char* pattern :
       {"optimizer +sgd, lr = 0\\.1, momentum = 0\\.9", "training +accumulate = 2, amp = \"bf16\"",
        "data +synthetic, .*; standardize = true", "ddprun: checkpoint: .*-00000020\\.safetensors",
        "step lines .* since the start of the epoch\\)"}) {
    CAPTURE(pattern);
    CHECK_MESSAGE(has_line(printed.err, pattern), printed.err);
  }
  CHECK_FALSE(contains(printed.err, "step-00000002"));
  const auto all = place.run(place.training(place.config(kImages), settings) + Argv{"--verbose"});
  CHECK(contains(all.err, "step-00000002"));
}

// The row "device" of the banner.
std::string device_row(Workplace& place, std::vector<std::string> options, const std::string& variable = "") {
  auto command = place.training(place.config(kImages), {"train.steps=1", "strategy.kind=single"});
  command.insert(command.end(), options.begin(), options.end());
  if (!variable.empty()) command.insert(command.begin(), variable);
  command.insert(command.begin(), {"/usr/bin/env", "-u", "OMP_WAIT_POLICY", "-u", "GOMP_SPINCOUNT"});
  const auto printed = place.run(command);
  INFO(printed.err);
  REQUIRE(printed.code == 0);
  for (const std::string& line : lines_of(printed.err)) {
    if (line.starts_with("device ")) return line;
  }
  return "";
}

TEST_CASE("threads that leave no core free sleep while they wait, unless the user has chosen; the banner says so") {
  Workplace place;
  const std::string count = std::to_string(std::thread::hardware_concurrency() + 1);
  const std::vector<std::string> many = {"--set", "launch.threads=" + count};
  CHECK(contains(device_row(place, many), count + " threads per rank, OMP_WAIT_POLICY=passive"));
  CHECK(contains(device_row(place, many, "OMP_WAIT_POLICY=active"), "OMP_WAIT_POLICY=active"));
  CHECK_FALSE(contains(device_row(place, many, "GOMP_SPINCOUNT=10"), "OMP_WAIT_POLICY"));
  CHECK_FALSE(contains(device_row(place, {"--set", "launch.threads=1"}), "OMP_WAIT_POLICY"));
}

TEST_CASE("--quiet prints only the results, --verbose no less than usual, and neither changes the experiment") {
  Workplace place;
  const auto run_with = [&](const std::string& flag) {
    auto command = place.training(place.config(kImages), {"train.epochs=1"});
    command.push_back(flag);
    const auto printed = place.run(command);
    INFO(printed.err);
    REQUIRE(printed.code == 0);
    return Finished{printed, place.new_run()};
  };
  const Finished quiet = run_with("--quiet"), verbose = run_with("--verbose");
  CHECK(quiet.printed.err == "");
  CHECK(has_line(quiet.printed.out, "test accuracy .*"));
  CHECK(has_line(verbose.printed.err, "epoch 1 done in .*"));
  CHECK(read_file(quiet.run / "config.toml") == read_file(verbose.run / "config.toml"));

  auto both = place.training(place.config(kImages));
  both.insert(both.end(), {"--quiet", "--verbose"});
  CHECK(place.run(both).code == 2);
}

TEST_CASE("the run folder holds config, environment, steps and log of each rank, epochs and the summary") {
  Workplace place;
  const auto [printed, run] = finish(place, place.config(kImages));
  const auto summary = summary_of(run);
  for (const char* key :
       {"test.accuracy", "test.loss", "train.loss", "total_time", "avg_batch_time", "avg_data_time", "avg_compute_time",
        "throughput", "split.forward", "split.backward", "split.comm", "split.optimizer"}) {
    CAPTURE(key);
    REQUIRE(summary.contains(key));
    CHECK(summary.at(key).get<double>() > 0);
  }
  const auto seconds = [&](const char* key) { return summary.at(key).get<double>(); };
  CHECK(seconds("avg_data_time") + seconds("avg_compute_time") + seconds("split.comm") ==
        doctest::Approx(seconds("avg_batch_time")));
  CHECK(summary.at("world") == 2);
  CHECK(summary.at("seed") == 42);
  CHECK(summary.at("steps") == 80);
  CHECK(summary.at("epochs") == 4);
  CHECK(summary.at("backend") == "gloo");
  CHECK(summary.at("algorithm") == "ring");
  CHECK(summary.at("test.accuracy").get<double>() <= 1);
  CHECK(summary.at("throughput").get<double>() ==
        doctest::Approx(4 * 480 / summary.at("total_time").get<double>()).epsilon(1e-6));

  for (const int rank : {0, 1}) {
    const auto steps = steps_of(run, rank);
    REQUIRE(steps.size() == 80);
    CHECK(steps[79].at("step") == 80);
    CHECK(steps[79].at("epoch") == 4);
    CHECK(steps[79].at("samples") == 12);
    for (const char* key : {"data", "forward", "backward", "comm", "optimizer", "total"}) {
      CHECK(steps[79].at(key).get<double>() >= 0);
    }
  }
  // Rank 0's output, both streams; the others print nothing if all is well.
  CHECK(contains(read_file(run / "rank0.log"), "epoch 4 done"));
  CHECK(contains(read_file(run / "rank0.log"), "test accuracy"));
  CHECK(read_file(run / "rank1.log").empty());

  const auto epochs = json_lines(run / "epochs.jsonl");
  REQUIRE(epochs.size() == 4);
  CHECK(epochs[3].at("test.loss") == summary.at("test.loss"));
  CHECK(epochs[3].at("train.loss") == summary.at("train.loss"));
  REQUIRE(epochs[3].at("train.loss_by_rank").size() == 2);

  const auto environment = nlohmann::json::parse(read_file(run / "environment.json"));
  for (const char* key : {"ddprun", "compiler", "host", "kernel", "cores", "torch", "plugin.comm.library"}) {
    CAPTURE(key);
    CHECK(environment.contains(key));
  }
}

TEST_CASE("the newest `keep` checkpoints are kept, one per epoch") {
  Workplace place;
  const std::string config = place.config(kImages);
  const auto steps_of_commits = [&](const std::vector<std::string>& overrides) {
    std::vector<int64_t> steps;
    for (const auto& commit : commits_of(finish(place, config, overrides).run)) steps.push_back(commit.step);
    return steps;
  };
  CHECK(steps_of_commits({"checkpoint.keep=3"}) == std::vector<int64_t>{40, 60, 80});
  CHECK(steps_of_commits({"checkpoint.keep=all"}) == std::vector<int64_t>{20, 40, 60, 80});
  CHECK(steps_of_commits({"checkpoint.every_epochs=0"}) == std::vector<int64_t>{80});
  CHECK(steps_of_commits({"checkpoint.every_epochs=3", "checkpoint.keep=9"}) == std::vector<int64_t>{60, 80});
  CHECK(steps_of_commits({"checkpoint.every_steps=25", "checkpoint.keep=9"}) ==
        std::vector<int64_t>{20, 25, 40, 50, 60, 75, 80});
  CHECK(steps_of_commits({"train.steps=30", "checkpoint.keep=9"}) == std::vector<int64_t>{20, 30});
}

TEST_CASE("config.toml of the run folder gives the same run again, bit for bit, on two ranks and on one process") {
  for (const char* kind : {"ddp", "single"}) {
    CAPTURE(kind);
    const bool ddp = std::string(kind) == "ddp";
    Workplace place;
    const auto first = finish(place, place.config(kImages),
                              {std::string("strategy.kind=") + kind, ddp ? "launch.nproc=2" : "launch.nproc=1",
                               "experiment.seed=7", "train.epochs=2"});
    const auto again = place.ddprun({"--config", (first.run / "config.toml").string()});
    CHECK_MESSAGE(again.code == 0, again.err);
    const auto second = place.new_run();
    CHECK(second.filename().string().starts_with("exp-"));  // the name of the experiment, not of the file
    CHECK(read_file(second / "config.toml") == read_file(first.run / "config.toml"));
    for (int rank = 0; rank < (ddp ? 2 : 1); ++rank) {
      const auto before = steps_of(first.run, rank);
      const auto after = steps_of(second, rank);
      REQUIRE(before.size() == 40);
      REQUIRE(after.size() == before.size());
      for (std::size_t step = 0; step < before.size(); ++step) CHECK(after[step].at("loss") == before[step].at("loss"));
    }
    CHECK(weights_of(second) == weights_of(first.run));
    CHECK(summary_of(second).at("test.loss") == summary_of(first.run).at("test.loss"));
  }
}

TEST_CASE("another seed gives another run") {
  Workplace place;
  const std::string config = place.config(kImages);
  const auto first = finish(place, config, {"train.steps=3"});
  const auto second = finish(place, config, {"train.steps=3", "experiment.seed=43"});
  CHECK(weights_of(first.run) != weights_of(second.run));
}

TEST_CASE("a run of steps reports that, and is evaluated at its end") {
  Workplace place;
  const auto [printed, run] = finish(place, place.config(kImages), {"train.steps=7"});
  CHECK_MESSAGE(has_line(printed.err, "length +7 steps, an epoch has 20"), printed.err);
  CHECK(summary_of(run).at("steps") == 7);
  CHECK(summary_of(run).contains("test.accuracy"));
}

TEST_CASE("evaluate = false leaves the test figures out") {
  Workplace place;
  const auto [printed, run] = finish(place, place.config(kImages), {"train.steps=3", "train.evaluate=false"});
  CHECK_FALSE(summary_of(run).contains("test.accuracy"));
  CHECK_FALSE(contains(printed.out, "test accuracy"));
  CHECK_FALSE(contains(printed.out, "test loss"));
}

TEST_CASE("Python's safetensors reads a checkpoint, under PyTorch's names") {
  if (std::system("'" DDPRUN_PYTHON "' -c 'import safetensors.numpy' 2>/dev/null") != 0) {
    std::cout << "skipped: " DDPRUN_PYTHON " has no safetensors\n";
    return;
  }
  Workplace place;
  const auto run = finish(place, place.config(kImages), {"train.steps=3"}).run;
  const auto result = place.run({DDPRUN_PYTHON, "-c",
                                 "import sys, safetensors.numpy as s\n"
                                 "for name, array in sorted(s.load_file(sys.argv[1]).items()):\n"
                                 "  print(name, array.dtype, *array.shape, float(array.reshape(-1)[0]).hex())\n",
                                 commits_of(run).back().path});
  CHECK_MESSAGE(result.code == 0, result.err);
  const auto lines = lines_of(result.out);
  const Weights weights = weights_of(run);
  const std::vector<std::string> expected = {"fc1.bias float32 32", "fc1.weight float32 32 784", "fc2.bias float32 10",
                                             "fc2.weight float32 10 32"};
  REQUIRE(lines.size() == expected.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CAPTURE(lines[i]);
    CHECK(lines[i].starts_with(expected[i] + " "));
    const float first = weights.at(lines[i].substr(0, lines[i].find(' ')))[0];
    CHECK(std::strtod(lines[i].substr(lines[i].rfind(' ')).c_str(), nullptr) == first);
  }
}

}  // namespace
