// A run that was stopped and resumed equals the run that was never stopped, bit for bit.
#include <doctest/doctest.h>

#include "e2e/program.hpp"
#include "e2e/run_files.hpp"
#include "support/paths.hpp"

using namespace ddprun::e2e;
using namespace ddprun::testing;

namespace {

// 10 steps per epoch; dropout and BatchNorm, several buckets.
const std::string kExperiment = R"(
[launch]
threads = 1
[strategy]
bucket_cap_mb = 0.001
[model]
name = "DROPNET"
[data]
name = "synthetic"
batch_size = 24
options = { shape = "1x8x8", classes = 4, samples = 240, test_samples = 48 }
[optimizer]
lr = 0.01
[checkpoint]
keep = 10
best = "test.loss"
)";

struct Trained {
  std::vector<nlohmann::json> steps[3], epochs;
  std::string weights;  // the bytes of the model file
  nlohmann::json summary;
};

const std::string kPlugin = build_dir() + "/tests/fakes/models/libddprun_model_dropnet.so";

class Runs {
 public:
  Runs(std::vector<std::string> settings, int world) : settings_(std::move(settings)), world_(world) {
    std::string text = kExperiment;
    text.replace(text.find("DROPNET"), 7, kPlugin);
    config_ = place_.config(text);
    settings_.push_back("launch.nproc=" + std::to_string(world));
  }

  ProcessResult start(std::vector<std::string> more) {
    more.insert(more.begin(), settings_.begin(), settings_.end());
    return place_.run(place_.training(config_, more));
  }

  // Runs to the end; returns the run's folder.
  std::filesystem::path train(const std::vector<std::string>& more) {
    const auto result = start(more);
    INFO(result.err);
    REQUIRE(result.code == 0);
    return place_.new_run();
  }

  // The results of a run from a step on.
  Trained read(const std::filesystem::path& run, int64_t from) const {
    Trained trained;
    for (int rank = 0; rank < world_; ++rank) {
      for (const auto& step : steps_of(run, rank)) {
        if (step.at("step").get<int64_t>() < from) continue;
        trained.steps[rank].push_back({step.at("step"), step.at("epoch"), step.at("loss"), step.at("samples")});
      }
    }
    for (auto epoch : json_lines(run / "epochs.jsonl")) {
      epoch.erase("seconds");
      trained.epochs.push_back(epoch);
    }
    const auto file = ddprun::checkpoint::read_safetensors(commits_of(run).back().path);
    for (const auto& tensor : file.tensors) {
      trained.weights +=
          tensor.name + std::string(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
    }
    trained.summary = summary_of(run);
    return trained;
  }

  Workplace& place() { return place_; }
  const std::string& config() const { return config_; }

 private:
  Workplace place_;
  std::vector<std::string> settings_;
  int world_;
  std::string config_;
};

ddprun::checkpoint::Metadata best_of(const std::filesystem::path& run) {
  return ddprun::checkpoint::read_safetensors((run / "checkpoints/best.safetensors").string()).metadata;
}

// The best metric of all evaluations; a run that ended in the middle of an epoch has one more evaluation.
void check_best(const std::filesystem::path& whole, const std::filesystem::path& broken,
                const std::filesystem::path& resumed) {
  const auto value = [](const std::filesystem::path& run) { return std::stod(best_of(run).at("best.value")); };
  CHECK(value(resumed) == std::min(value(whole), value(broken)));
  CHECK(summary_of(resumed).at("best.epoch").dump() == best_of(resumed).at("epoch"));
}

void check_goes_on(const std::vector<std::string>& settings, int world) {
  CAPTURE(world);
  CAPTURE(settings.back());
  Runs runs(settings, world);
  const auto whole = runs.train({"train.epochs=3"});
  // In the middle of the second epoch, and at its end.
  for (const int64_t stop : {14, 20}) {
    CAPTURE(stop);
    const auto broken = runs.train({"train.steps=" + std::to_string(stop)});
    const auto resumed = runs.train({"train.epochs=3", "checkpoint.resume=" + broken.string()});
    const Trained a = runs.read(whole, stop + 1), b = runs.read(resumed, 0);
    for (int rank = 0; rank < world; ++rank) {
      REQUIRE(a.steps[rank].size() == static_cast<std::size_t>(30 - stop));
      CHECK(a.steps[rank] == b.steps[rank]);
    }
    CHECK(a.weights == b.weights);
    const std::vector<nlohmann::json> epochs(a.epochs.begin() + 1, a.epochs.end());
    CHECK(epochs == b.epochs);
    for (const char* key : {"test.loss", "test.accuracy", "train.loss", "epochs"}) {
      CAPTURE(key);
      CHECK(a.summary.at(key) == b.summary.at(key));
    }
    check_best(whole, broken, resumed);
  }
}

// A run that commits every step ends as one that does not, and its commits resume bit for bit.
void check_each_commit_goes_on(const std::vector<std::string>& settings, int world) {
  CAPTURE(world);
  Runs runs(settings, world);
  const auto whole = runs.train({"train.epochs=3"});
  const auto many =
      runs.train({"train.epochs=3", "checkpoint.every_steps=1", "checkpoint.every_epochs=0", "checkpoint.keep=100"});
  const auto commits = commits_of(many);
  REQUIRE(commits.size() == 30);
  CHECK(runs.read(many, 1).weights == runs.read(whole, 1).weights);
  for (const std::size_t index : {0, 4, 12, 16}) {
    CAPTURE(commits[index].step);
    const auto resumed = runs.train({"train.epochs=3", "checkpoint.resume=" + commits[index].path});
    const Trained a = runs.read(whole, commits[index].step + 1), b = runs.read(resumed, 0);
    for (int rank = 0; rank < world; ++rank) CHECK(a.steps[rank] == b.steps[rank]);
    CHECK(a.weights == b.weights);
    CHECK(a.epochs.back() == b.epochs.back());
  }
}

TEST_CASE("checkpoints by steps resume bit for bit from the middle of an epoch, on one rank and on two") {
  check_each_commit_goes_on({"optimizer.name=adam"}, 1);
  check_each_commit_goes_on({"strategy.kind=ddp", "optimizer.momentum=0.9", "train.schedule=cosine"}, 2);
}

TEST_CASE("checkpoints by time are written while the run trains") {
  Runs runs({"strategy.kind=ddp", "checkpoint.every_epochs=0", "checkpoint.every_time=100ms"}, 2);
  Job job(runs.place(),
          runs.place().training(runs.config(), {"strategy.kind=ddp", "launch.nproc=2", "checkpoint.every_epochs=0",
                                                "train.epochs=1000000", "checkpoint.every_time=100ms"}));
  job.wait_for_steps();
  const auto run = runs.place().new_run();
  const auto count = [&] { return commits_of(run).size(); };
  CHECK(eventually([&] { return count() >= 3; }, std::chrono::seconds(60)));
  job.launcher().send(SIGKILL);
}

TEST_CASE("after a resume within an epoch, its lines say where their averages begin, and the next epoch's do not") {
  Runs runs({}, 1);
  const auto broken = runs.train({"train.steps=14"});
  const auto resumed = runs.start({"train.epochs=3", "log.every=1", "checkpoint.resume=" + broken.string()});
  INFO(resumed.err);
  const auto line_of = [&](const std::string& step) {
    const auto at = resumed.err.find("epoch " + step);
    return at == std::string::npos ? "no " + step : resumed.err.substr(at, resumed.err.find('\n', at) - at);
  };
  for (const char* step : {"2 [5/10]", "2 [10/10]"}) CHECK(line_of(step).ends_with("; averages since step 5"));
  CHECK(line_of("3 [1/10]").starts_with("epoch 3 [1/10] time "));
  CHECK_FALSE(contains(line_of("3 [1/10]"), "averages"));
}

TEST_CASE("single resumes bit for bit, with SGD's momentum and with Adam") {
  check_goes_on({"optimizer.name=sgd", "optimizer.momentum=0.9"}, 1);
  check_goes_on({"optimizer.name=adam"}, 1);
  check_goes_on({"optimizer.name=adamw"}, 1);
}

TEST_CASE("two ranks resume bit for bit, each with its own random state and, unless synchronised, its own buffers") {
  check_goes_on({"strategy.kind=ddp", "optimizer.name=sgd", "optimizer.momentum=0.9"}, 2);
  check_goes_on({"strategy.kind=ddp", "optimizer.name=adam", "strategy.broadcast_buffers=false"}, 2);
}

TEST_CASE("three ranks resume bit for bit: the bucket order is kept") {
  check_goes_on({"strategy.kind=ddp", "comm.algorithm=ring", "optimizer.name=sgd"}, 3);
}

// The optimizer's state in each rank's state file, in bytes.
std::vector<std::size_t> optimizer_bytes(const std::filesystem::path& run, int world) {
  std::vector<std::size_t> bytes;
  for (int rank = 0; rank < world; ++rank) {
    const std::string path = ddprun::checkpoint::state_path(commits_of(run).back(), rank);
    bytes.push_back(0);
    for (const auto& tensor : ddprun::checkpoint::read_safetensors(path).tensors) {
      if (tensor.name.starts_with("optimizer.") && !tensor.name.ends_with(".step")) bytes.back() += tensor.data.size();
    }
  }
  return bytes;
}

TEST_CASE("ZeRO gives the same weights, saves the same state, and resumes with and without it") {
  for (const std::string optimizer : {"sgd", "adam", "adamw"}) {
    CAPTURE(optimizer);
    Runs runs({"strategy.kind=ddp", "optimizer.momentum=0.9", "optimizer.name=" + optimizer, "train.clip_norm=0.5",
               "train.accumulate=2", "train.schedule=cosine",
               "train.amp=" + std::string(optimizer == "adam" ? "fp16" : "off")},
              2);
    const std::string on = "strategy.zero=1", off = "strategy.zero=0";
    const auto whole = runs.train({"train.epochs=3", off}), sharded = runs.train({"train.epochs=3", on});
    const std::string weights = runs.read(whole, 1).weights;
    CHECK(runs.read(sharded, 1).weights == weights);
    const auto all = optimizer_bytes(whole, 2), saved = optimizer_bytes(sharded, 2);
    CHECK(all[0] > 0);
    CHECK(all[1] == 0);
    CHECK(saved == all);
    for (const auto& [before, after] : {std::pair{on, on}, {on, off}, {off, on}}) {
      CAPTURE(before);
      CAPTURE(after);
      const auto broken = runs.train({"train.epochs=3", "checkpoint.every_steps=7", before});
      const auto commit = commits_of(broken).front();
      REQUIRE(commit.step == 7);
      const auto resumed = runs.train({"train.epochs=3", "checkpoint.resume=" + commit.path, after});
      CHECK(runs.read(resumed, 1).weights == weights);
    }
  }
}

TEST_CASE("a run of two ranks with ZeRO resumes on three, with and without it") {
  Runs two({"strategy.kind=ddp", "optimizer.name=adam", "strategy.zero=1"}, 2);
  const auto from = two.train({"train.epochs=1"});
  Runs three({"strategy.kind=ddp", "optimizer.name=adam", "checkpoint.resume=" + from.string()}, 3);
  const auto sharded = three.train({"train.epochs=2", "strategy.zero=1"}), whole = three.train({"train.epochs=2"});
  CHECK(three.read(sharded, 1).weights == three.read(whole, 1).weights);
}

TEST_CASE("half precision, micro-batches, clipping, a schedule and an early stop resume bit for bit") {
  check_goes_on({"train.amp=bf16", "train.accumulate=3", "train.clip_norm=0.5", "train.schedule=step",
                 "train.step_epochs=1", "train.warmup=4", "train.early_stop=train.loss", "train.patience=9"},
                1);
}

TEST_CASE("a job whose ranks were killed resumes from its newest commit") {
  Runs runs({"strategy.kind=ddp", "optimizer.momentum=0.9"}, 2);
  Job job(runs.place(), runs.place().training(runs.config(), {"strategy.kind=ddp", "optimizer.momentum=0.9",
                                                              "launch.nproc=2", "train.epochs=1000000"}));
  job.wait_for_steps();
  const auto rank = job.ranks(2).at(1);
  const auto folder = [&] {
    for (const auto& run : std::filesystem::directory_iterator(runs.place().runs())) {
      if (!commits_of(run.path()).empty()) return true;
    }
    return false;
  };
  REQUIRE(eventually(folder, std::chrono::seconds(60)));
  kill(rank, SIGKILL);
  CHECK(job.launcher().wait().code == 5);
  const auto broken = runs.place().new_run();
  // Wherever it was killed, five epochs of ten steps remain.
  const std::string epochs = "train.epochs=" + std::to_string(commits_of(broken).back().step / 10 + 5);
  const auto resumed = runs.train({epochs, "checkpoint.resume=latest"});
  CHECK(steps_of(resumed, 0).size() == 50);
  const auto whole = runs.train({epochs});
  CHECK(runs.read(whole, 1).weights == runs.read(resumed, 1).weights);
}

TEST_CASE("latest is the newest run of this name that has a checkpoint") {
  Runs runs({}, 1);
  const auto first = runs.train({"train.epochs=1"});
  std::filesystem::create_directory(runs.place().runs() / "exp-99991231-235959");  // a run that was stopped immediately
  runs.place().new_run();
  const auto resumed = runs.train({"train.epochs=2", "checkpoint.resume=latest"});
  CHECK(commits_of(resumed).back().step == 20);
  CHECK(steps_of(resumed, 0).front().at("step") == 11);
  const auto file = commits_of(first).back().path;
  const auto again = runs.start({"train.epochs=2", "checkpoint.resume=" + file});
  CHECK(again.code == 0);
  CHECK(
      contains(again.err, "resuming from " + file + ": step 10, at the end of epoch 1; with train.epochs = 2 (was 1)"));
}

TEST_CASE("auto: one command starts a run, resumes it, and ends with 0 when nothing is left to train") {
  for (const int world : {1, 2}) {
    CAPTURE(world);
    Runs runs({world == 1 ? "strategy.kind=single" : "strategy.kind=ddp", "checkpoint.resume=auto"}, world);
    const auto first = runs.start({"train.steps=14"});
    REQUIRE_MESSAGE(first.code == 0, first.err);
    CHECK_MESSAGE(contains(first.err, "no run of \"exp\" with a checkpoint lies in " + runs.place().runs().string() +
                                          ": this is a new run"),
                  first.err);
    const auto broken = runs.place().new_run();
    const auto second = runs.start({"train.epochs=2"});
    REQUIRE_MESSAGE(second.code == 0, second.err);
    CHECK_MESSAGE(contains(second.err, "resuming from " + commits_of(broken).back().path + ": step 14"), second.err);
    const auto resumed = runs.place().new_run();
    CHECK(steps_of(resumed, world - 1).front().at("step") == 15);
    const auto third = runs.start({"train.epochs=2"});
    CHECK(third.code == 0);
    CHECK(third.err == "ddprun: nothing is left to train: " + commits_of(resumed).back().path + " has 2 epochs\n");
    CHECK(third.out.empty());
    CHECK_THROWS(runs.place().new_run());  // there is none
    const auto more = runs.train({"train.epochs=3"});
    CHECK(steps_of(more, 0).front().at("step") == 21);
    const auto other = runs.start({"train.epochs=1", "experiment.name=other"});
    CHECK_MESSAGE(contains(other.err, "this is a new run"), other.err);
  }
}

TEST_CASE("auto does not resume a run that ended by early stop") {
  Runs runs({"checkpoint.resume=auto", "train.early_stop=train.loss", "train.min_delta=1000", "train.patience=1"}, 1);
  const auto ended = runs.train({"train.epochs=9"});
  REQUIRE(summary_of(ended).at("stopped") == "early_stop");
  const auto again = runs.start({"train.epochs=9"});
  CHECK(again.code == 0);
  CHECK(again.err == "ddprun: nothing is left to train: train.early_stop has ended " + ended.string() + "\n");
}

TEST_CASE("an interrupted run prints how to resume, and the resumed run equals one that was not interrupted") {
  Runs runs({}, 1);
  const auto whole = runs.train({"train.epochs=400"});
  Job job(runs.place(), runs.place().training(runs.config(), {"launch.nproc=1", "train.epochs=400"}));
  job.wait_for_steps();
  job.launcher().send(SIGTERM);
  const auto result = job.launcher().wait();
  CHECK(result.code == 143);
  const auto broken = runs.place().new_run();
  CHECK(summary_of(broken).at("stopped") == "interrupted");
  const std::string said = "to resume: repeat the command with --set checkpoint.resume=" + broken.string();
  CHECK_MESSAGE(contains(result.err, said), result.err);
  const auto resumed = runs.train({"train.epochs=400", "checkpoint.resume=" + broken.string()});
  CHECK(runs.read(whole, 1).weights == runs.read(resumed, 1).weights);
}

}  // namespace
