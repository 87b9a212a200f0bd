#include <cmath>
#include <cstdio>
#include <filesystem>

#include "cli/console/console.hpp"
#include "cli/run/devices.hpp"
#include "cli/run/resume.hpp"
#include "cli/run/run.hpp"
#include "cli/run/training.hpp"
#include "train/loop/training_loop.hpp"
#include "train/tensor/weights.hpp"

namespace ddprun::run {
namespace {

namespace fs = std::filesystem;

// The model with the checkpoint's weights, and its standardization.
Assembly load(config::Loaded loaded, const std::string& checkpoint, const plugin::Registry& registry) {
  loaded.experiment.train.evaluate = false;  // a setting of the training; the test split is required below
  loaded.experiment.model.weights.clear();
  Assembly made = assemble(std::move(loaded), registry);
  if (made.data.test == nullptr) {
    throw Error(ExitCode::usage, config::error(made.loaded.sources, "data.name",
                                               "has no test split here, and ddprun evaluate needs one"));
  }
  const checkpoint::Metadata metadata = train::load_weights(made.model->module(), checkpoint);
  if (const auto by = metadata.find(kStandardize); by != metadata.end()) {
    made.standardization = data::read_standardization(by->second);
  } else if (made.experiment().data.standardize) {
    throw Error(ExitCode::usage, checkpoint +
                                     ": holds no standardization, and data.standardize = true; evaluate it "
                                     "with --set data.standardize=false, or take a checkpoint that does");
  }
  return made;
}

Evaluation evaluate(Assembly& assembly, Connections& connections, const launch::World& world) {
  const auto test = test_loader(assembly, world);
  const auto parameters = train::trainable_parameters(assembly.model->module());
  const auto optimizer =
      train::make_optimizer(optimizer_options(assembly.experiment().optimizer, world.size), parameters);
  const auto sync = make_sync(assembly, connections);
  const auto strategy = make_strategy(assembly, connections.ranks, sync.get());
  train::TrainingLoop loop({.model = *assembly.model,
                            .optimizer = *optimizer,
                            .strategy = *strategy,
                            .ranks = connections.ranks,
                            .train = *test,
                            .test = test.get(),
                            .step = {.channels_last = assembly.experiment().train.channels_last}});
  return loop.evaluate();
}

}  // namespace

Evaluated find_evaluated(const std::string& checkpoint, const std::string& config) {
  const auto file = checkpoint_at(checkpoint);
  if (!file)
    throw Error(ExitCode::usage, checkpoint + ": no such file or folder; give a run folder, or a file of weights");
  if (!config.empty()) return {*file, config};
  const fs::path run_config = fs::absolute(*file).parent_path().parent_path() / "config.toml";
  if (!fs::exists(run_config)) {
    throw Error(ExitCode::usage, checkpoint + ": no config.toml of a run belongs to it; give --config");
  }
  return {*file, run_config.string()};
}

void check_evaluation(const config::Loaded& loaded, const std::string& checkpoint, const plugin::Registry& registry,
                      int world) {
  torch::set_num_threads(1);
  check_devices(loaded, world);
  rank_batch(loaded, world);
  load(loaded, checkpoint, registry);
}

void run_evaluation(config::Loaded loaded, const std::string& checkpoint, launch::World world,
                    const plugin::Registry& registry) {
  const Rendezvous rendezvous = join_rendezvous(world, config::milliseconds(loaded.experiment.launch.timeout));
  Evaluation result;
  run_linked(rendezvous, [&] {
    const std::vector<torch::Device> devices = choose_devices(loaded, world);
    Assembly assembly = load(std::move(loaded), checkpoint, registry);
    use_threads(assembly.experiment(), world);
    standardize_data(assembly);
    place_models(assembly, devices);
    Connections connections = connect(assembly, world, rendezvous);
    result = evaluate(assembly, connections, world);
  });
  if (!std::isfinite(result.loss))
    throw Error(ExitCode::failure, checkpoint + ": the loss on the test set is not finite");
  if (world.rank != 0) return;
  record::Summary summary;
  summary.test_loss = result.loss;
  summary.test_accuracy = result.accuracy;
  summary.world = world.size;
  const std::string text = "checkpoint " + checkpoint + "\n" + std::to_string(result.samples) + " test samples\n" +
                           console::summary_table(summary);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace ddprun::run
