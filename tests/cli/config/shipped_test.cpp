// Each file in configs/ matches its name; the tutorials' files have the tutorials' settings.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <regex>

#include "cli/config/experiment.hpp"
#include "support/paths.hpp"

using namespace ddprun;

namespace {

const std::string kFolder = ddprun::testing::source_dir() + "/configs/";

config::Experiment shipped(const std::string& name) {
  return config::load(kFolder + name + ".toml", {}).experiment;
}

// <model>_<strategy>[_<backend>[_<algorithm>]][_laptop]
struct Name {
  std::string model, strategy, backend, algorithm;
  bool laptop = false;
};

// The files whose names match this pattern, without the extension.
std::map<std::string, Name> tutorials() {
  static const std::regex scheme(
      "(linear|mnist_simplenet|cifar10_resnet18)_(single|dp|ddp)(_(gloo|shm|ucx|nccl)(_(ring|tree))?)?"
      "(_laptop)?");
  std::map<std::string, Name> names;
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    const std::string stem = file.path().stem();
    std::smatch part;
    if (!std::regex_match(stem, part, scheme)) continue;
    names[stem] = {part[1], part[2], part[4], part[6], part[7].matched};
  }
  return names;
}

}  // namespace

TEST_CASE("every file of configs/ loads, and uses all its keys") {
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    CAPTURE(file.path().string());
    CHECK(file.path().extension() == ".toml");
    const config::Loaded loaded = config::load(file.path(), {});
    CHECK(loaded.experiment.experiment.name == file.path().stem());
    CHECK(config::unused_keys(loaded.experiment, loaded.sources).empty());
  }
}

TEST_CASE("the tutorials' experiments exist: each model with each strategy and each backend") {
  const auto names = tutorials();
  for (const std::string model : {"linear", "mnist_simplenet", "cifar10_resnet18"}) {
    for (const std::string spread : {"single", "dp", "ddp_gloo", "ddp_shm", "ddp_ucx", "ddp_nccl"}) {
      CAPTURE(model);
      CAPTURE(spread);
      CHECK(names.contains(model + "_" + spread));
    }
  }
  for (const std::string algorithm : {"gloo_ring", "gloo_tree", "ucx_ring", "ucx_tree"}) {
    CAPTURE(algorithm);
    CHECK(names.contains("mnist_simplenet_ddp_" + algorithm));
  }
  const auto all = std::distance(std::filesystem::directory_iterator(kFolder), {});
  CHECK(static_cast<std::size_t>(all) == names.size() + 2);  // plus quickstart and image_folder
}

TEST_CASE("a config matches its name") {
  for (const auto& [file, name] : tutorials()) {
    CAPTURE(file);
    const config::Experiment e = shipped(file);
    CHECK(e.strategy.kind == name.strategy);
    if (name.strategy == "ddp") CHECK(e.comm.backend == name.backend);
    CHECK(e.launch.device == (name.backend == "nccl" ? "cuda" : "cpu"));
    if (!name.algorithm.empty()) CHECK(e.comm.algorithm == name.algorithm);
    CHECK(name.model.ends_with(e.model.name));
    CHECK(e.launch.nproc == (name.strategy == "ddp" ? 2 : 1));
    if (name.strategy == "dp") CHECK(e.strategy.devices == 2);
  }
}

TEST_CASE("the configs of a model differ only in how they are distributed") {
  for (const auto& [file, name] : tutorials()) {
    CAPTURE(file);
    config::Experiment e = shipped(file);
    const config::Experiment single = shipped(name.model + "_single" + (name.laptop ? "_laptop" : ""));
    e.experiment = single.experiment;
    e.launch = single.launch;
    e.comm = single.comm;
    e.strategy = single.strategy;
    CHECK(config::to_toml(e) == config::to_toml(single));
  }
}

TEST_CASE("linear: 10,000 samples of y = 2x + 3 + 0.1 noise, SGD of 0.01 x world, 32 per rank, 10 epochs") {
  const config::Experiment e = shipped("linear_single");
  CHECK(e.data.name == "linear");
  CHECK(e.data.options.empty());  // the defaults are these values
  CHECK(e.data.batch_size == 32);
  CHECK(e.data.batch_per == "rank");
  CHECK(e.optimizer.name == "sgd");
  CHECK(e.optimizer.lr == 0.01);
  CHECK(e.optimizer.scale_lr == "world");
  CHECK(e.optimizer.momentum == 0);
  CHECK(e.train.epochs == 10);
}

TEST_CASE("SimpleNet: MNIST from 0 to 1, Adam of 1e-3, 64 per rank, 2 epochs") {
  const config::Experiment e = shipped("mnist_simplenet_single");
  CHECK(e.data.name == "mnist");
  CHECK(e.data.root.empty());      // data/mnist of the current folder, where `ddprun data fetch mnist` puts it
  CHECK(e.data.options.empty());   // not standardised
  CHECK(e.model.options.empty());  // 256 hidden units
  CHECK(e.data.batch_size == 64);
  CHECK(e.data.batch_per == "rank");
  CHECK(e.optimizer.name == "adam");
  CHECK(e.optimizer.lr == 1e-3);
  CHECK(e.optimizer.scale_lr == "none");
  CHECK(e.train.epochs == 2);
}

TEST_CASE(
    "ResNet-18: CIFAR-10 at 224, mean and std 0.5, SGD of 0.9 and 0.01 x world, 128 in all, min(cpus, 8) workers") {
  const config::Experiment e = shipped("cifar10_resnet18_single");
  CHECK(e.data.name == "cifar10");
  CHECK(e.data.options == config::Options{{"image_size", "224"}, {"mean", "0.5"}, {"std", "0.5"}});
  CHECK(e.data.batch_size == 128);
  CHECK(e.data.batch_per == "global");
  CHECK(e.data.workers == -1);
  CHECK(e.optimizer.name == "sgd");
  CHECK(e.optimizer.lr == 0.01);
  CHECK(e.optimizer.scale_lr == "world");
  CHECK(e.optimizer.momentum == 0.9);
  CHECK(e.optimizer.weight_decay == 0);
  CHECK(e.train.epochs == 1);
}
