#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cli/config/experiment.hpp"
#include "written.hpp"

using namespace ddprun;
using testing::load_text;
using testing::required;

TEST_CASE(
    "the smallest experiment loads with every default, the file name without extension as its name, and one epoch") {
  const config::Loaded loaded = load_text("model.name = 'linear'\ndata.name = 'linear'\n");
  config::Experiment expected;
  expected.experiment.name = "exp";
  expected.model.name = "linear";
  expected.data.name = "linear";
  expected.train.epochs = 1;
  CHECK(config::to_toml(loaded.experiment) == config::to_toml(expected));
}

TEST_CASE("every kind of value reaches its member") {
  const config::Experiment e = load_text(R"([experiment]
name = "a run"
[launch]
nproc = 3
devices = [0, 1, 1]
[comm]
algorithm = "tree"
options = { interface = "lo", retries = 3, fraction = 0.5, quick = true, "odd key" = "x" }
[strategy]
kind = "ddp"
bucket_cap_mb = 0.5
[model]
name = "/opt/models/libmine.so"
[model.options]
width = 64
[data]
name = "mnist"
batch_size = 0x60
[optimizer]
name = "adam"
lr = 1
betas = [0.8, 0.99]
[train]
steps = 1_000
deterministic = true
)")
                                   .experiment;
  CHECK(e.experiment.name == "a run");
  CHECK(e.launch.nproc == 3);
  CHECK(e.launch.devices == std::vector<int64_t>{0, 1, 1});
  CHECK(e.comm.algorithm == "tree");
  CHECK(e.train.deterministic);
  CHECK(
      e.comm.options ==
      config::Options{{"interface", "lo"}, {"retries", "3"}, {"fraction", "0.5"}, {"quick", "true"}, {"odd key", "x"}});
  CHECK(e.strategy.bucket_cap_mb == 0.5);
  CHECK(e.model.options == config::Options{{"width", "64"}});
  CHECK(e.data.batch_size == 96);
  CHECK(e.optimizer.lr == 1.0);
  CHECK(e.optimizer.betas == std::vector<double>{0.8, 0.99});
  CHECK(e.train.steps == 1000);
  CHECK_FALSE(e.train.epochs.has_value());
}

TEST_CASE("durations may be in microseconds, milliseconds, seconds, minutes and hours") {
  const auto timeout = [](const std::string& text) {
    return load_text("comm.timeout = \"" + text + "\"" + required).experiment.comm.timeout;
  };
  CHECK(timeout("1500us") == 0.0015);
  CHECK(timeout("500ms") == 0.5);
  CHECK(timeout("1.5s") == 1.5);
  CHECK(timeout("30s") == 30.0);
  CHECK(timeout("2m") == 120.0);
  CHECK(timeout("24h") == 86400.0);
}

TEST_CASE("keep = \"all\" is 0 in the struct") {
  const config::Experiment e = load_text("checkpoint.keep = \"all\"" + required).experiment;
  CHECK(e.checkpoint.keep == 0);
  CHECK(config::to_toml(e).find("\nkeep = \"all\"\n") != std::string::npos);
}

TEST_CASE("workers = \"auto\" is -1 in the struct, and 0 none") {
  const config::Experiment e = load_text("data = { name = 'x', workers = 'auto' }\nmodel.name = 'x'").experiment;
  CHECK(e.data.workers == -1);
  CHECK(config::to_toml(e).find("\nworkers = \"auto\"\n") != std::string::npos);
  CHECK(load_text("data = { name = 'x', workers = 0 }\nmodel.name = 'x'").experiment.data.workers == 0);
  CHECK(testing::errors_of("data = { name = 'x', workers = -1 }\nmodel.name = 'x'") ==
        "exp.toml:1:32: data.workers = -1: expected an integer from 0 to 256 or \"auto\"");
}

TEST_CASE("nproc = \"auto\" is 0 in the struct") {
  CHECK(load_text("strategy.kind = 'ddp'\nlaunch.nproc = 'auto'" + required).experiment.launch.nproc == 0);
}

TEST_CASE("a file with a byte order mark and Windows line ends loads") {
  CHECK(load_text("\xef\xbb\xbfmodel.name = 'linear'\r\ndata.name = 'linear'\r\n").experiment.model.name == "linear");
}

TEST_CASE("sources know where each key is set, and which keys are not set") {
  const config::Sources sources =
      load_text("[comm]\n  algorithm = \"ring\"\n  options.interface = \"lo\"" + required, {"comm.timeout=5s"}).sources;
  CHECK(sources.find("comm.algorithm")->where == sources.file + ":2:15");
  CHECK(sources.find("comm.options.interface")->where == sources.file + ":3:23");
  CHECK(sources.find("comm.timeout")->where == "--set comm.timeout=5s");
  CHECK(sources.find("comm.backend") == nullptr);
  CHECK(sources.given("comm.algorithm"));
  CHECK(sources.given("comm.timeout"));
  CHECK_FALSE(sources.given("comm.backend"));
  CHECK_FALSE(sources.given("train.epochs"));
}

TEST_CASE("a relative path in a file is relative to the file's folder, and one of --set to the current folder") {
  const std::string text =
      "[model]\nname = './libm.so'\nweights = 'w.safetensors'\n[data]\nname = 'mnist'\nroot = '../data'\n"
      "[comm]\noptions = { tuning = 'gloo.tuning', interface = 'lo' }\n";
  const testing::InTempDir here;
  std::filesystem::create_directory("configs");
  here.write("configs/exp.toml", text + "[checkpoint]\nresume = 'latest'\n");
  const config::Experiment e = config::load("configs/exp.toml", {}).experiment;
  CHECK(e.data.root == "configs/../data");
  CHECK(e.model.weights == "configs/w.safetensors");
  CHECK(e.model.name == "configs/./libm.so");
  CHECK(e.data.name == "mnist");
  CHECK(e.checkpoint.resume == "latest");
  CHECK(e.experiment.output == "runs");
  CHECK(e.comm.options == config::Options{{"tuning", "configs/gloo.tuning"}, {"interface", "lo"}});

  const auto overridden =
      config::load("configs/exp.toml", {"data.root=here", "checkpoint.resume=runs/one", "comm.options.tuning=mine"})
          .experiment;
  CHECK(overridden.comm.options.at("tuning") == "mine");
  CHECK(overridden.data.root == "here");
  CHECK(overridden.checkpoint.resume == "runs/one");
  here.write("exp.toml", text);
  CHECK(config::load("exp.toml", {}).experiment.data.root == "../data");
}

TEST_CASE("paths in a config from a pipe are relative to the current folder") {
  const std::string text = testing::required + "root = 'data'\n";
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  REQUIRE(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  ::close(ends[1]);
  CHECK(config::load("/dev/fd/" + std::to_string(ends[0]), {}).experiment.data.root == "data");
  ::close(ends[0]);
}

TEST_CASE("the ranks compare whether they have a tuning table, and not its path; some options may differ") {
  const config::Options options = {{"tuning", "/a/gloo.tuning"}, {"interface", "eth0"}, {"tls", "tcp"}};
  CHECK(config::shared_options(options) == config::Options{{"tuning", "given"}, {"tls", "tcp"}});
}

TEST_CASE("paths become absolute for a copy of the config in another folder") {
  const testing::InTempDir here;
  const std::string folder = std::filesystem::current_path().string() + "/";
  config::Experiment e;
  e.data.root = "data";
  e.model.name = "linear";
  e.model.weights = "/w.safetensors";
  e.comm.backend = "lib/x.so";
  e.checkpoint.resume = "auto";
  e.comm.options = {{"tuning", "gloo.tuning"}};
  config::make_paths_absolute(e);
  CHECK(e.data.root == folder + "data");
  CHECK(e.model.name == "linear");
  CHECK(e.model.weights == "/w.safetensors");
  CHECK(e.comm.backend == folder + "lib/x.so");
  CHECK(e.checkpoint.resume == "auto");
  CHECK(e.comm.options.at("tuning") == folder + "gloo.tuning");
}
